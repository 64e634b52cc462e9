import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { report } from "../../clients/typescript/examples/report.ts";
import {
  AccessError,
  ConnectionError,
  InvalidRequestError,
  NotFoundError,
  RateLimitError,
  Roundhouse,
  UnavailableError,
  type ClientOptions,
} from "../../clients/typescript/src/index.ts";
import { setPlan } from "../../src/callers/plan-store.ts";
import { allowSlowness, play, score } from "../api/play.ts";
import { makeKey, makeWorld, type World } from "../api/world.ts";
import { eventually } from "../support/eventually.ts";

const TABLE = "alpha/crash/global";
let world: World;

beforeAll(async () => {
  world = await makeWorld();
  await allowSlowness(world);
  await play(world, TABLE, [150]); // rounds before the first poll say nothing of the next one
  await play(world, TABLE, [150]);
  await play(world, TABLE, [150]);
  await score(world, "alpha");
});
afterAll(() => world.close());

/** A client, and what it sent and received; `respond` takes the place of the network for a request. */
async function makeClient({
  plan = "Pro",
  respond,
  ...options
}: Partial<ClientOptions> & { plan?: string; respond?: (attempt: number) => Response | undefined } = {}) {
  const key = await makeKey(world.sql, `${crypto.randomUUID()}@example.com`, plan);
  const seen: { url: string; status: number }[] = [];
  const waits: number[] = [];
  const api = new Roundhouse({
    url: world.api.url,
    key,
    async fetch(request) {
      const response = respond?.(seen.length + 1) ?? (await fetch(request));
      seen.push({ url: request.url.slice(world.api.url.length), status: response.status });
      return response;
    },
    wait(seconds) {
      waits.push(seconds);
      return Promise.resolve();
    },
    ...options,
  });
  return { api, seen, waits };
}

describe("the TypeScript client", () => {
  it("lists every table of the plan", async () => {
    const { api } = await makeClient();
    const { games } = await api.games();
    expect(games.map(({ house, game, market }) => `${house}/${game}/${market}`)).toEqual([
      "alpha/crash/global",
      "alpha/dice/eu",
      "beta/crash/eu",
      "gamma/rocket/one",
    ]);
  });

  it("sends lists with commas and numbers as numbers", async () => {
    const { api, seen } = await makeClient();
    await api.rounds({ house: ["alpha", "beta"], game: ["crash"], limit: 2 });
    expect(seen).toEqual([{ url: "/api/v1/rounds?house=alpha,beta&game=crash&limit=2", status: 200 }]);
  });

  it("shows a forecast next to its baseline and to what such forecasts have been worth", async () => {
    const { api } = await makeClient();
    await eventually(async () => {
      const lines = report(await api.forecasts(), await api.accuracy({ feature: "next_color" })).split("\n");
      expect(lines).toHaveLength(4);
      expect(lines[0]).toMatch(
        /^alpha\/crash\/global: blue \d+\.\d % \(long run \d+\.\d %\), .*; in 30d 100\.0 % of 1 had the likeliest color \(95 %: \d+\.\d % to 100\.0 %; stated \d+\.\d %\), skill unknown$/,
      );
      expect(lines[1]).toBe("alpha/dice/eu: warming_up; nothing measured yet");
      return true;
    });
  });

  it("repeats a call at no cost while nothing has changed", async () => {
    const { api, seen } = await makeClient();
    const first = await api.games();
    expect(await api.games()).toEqual(first);
    expect(await api.games()).toEqual(first);
    expect(seen.map(({ status }) => status)).toEqual([200, 304, 304]);
    expect((await api.usage()).day.requests).toBe(1);
  });

  it("keeps as many responses as its cache holds and drops the one used longest ago", async () => {
    const { api, seen } = await makeClient({ cacheSize: 2 });
    for (const house of ["alpha", "beta", "alpha", "gamma", "alpha", "beta"]) await api.games({ house: [house] });
    expect(seen.map(({ status }) => status)).toEqual([200, 200, 304, 200, 304, 200]);
  });

  it("returns the kept response on a 304 that arrives after another response evicted it", async () => {
    const evicted = Promise.withResolvers<undefined>();
    const { api } = await makeClient({
      cacheSize: 1,
      async fetch(request) {
        const response = await fetch(request);
        if (response.status === 304) await evicted.promise;
        return response;
      },
    });
    const first = await api.games({ house: ["alpha"] });
    const repeated = api.games({ house: ["alpha"] });
    await api.games({ house: ["beta"] });
    evicted.resolve(undefined);
    expect(await repeated).toEqual(first);
  });

  it("waits as long as Retry-After states, twice at most", async () => {
    const { api, seen, waits } = await makeClient({ plan: "Starter" });
    await setPlan(world.sql, "Starter", { rps: 1, burst: 1 });
    try {
      await eventually(async () => {
        seen.length = 0;
        waits.length = 0;
        const error: unknown = await api.games().catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(RateLimitError);
        expect(error).toMatchObject({ code: "rate_limited", status: 429, retryAfterSeconds: 1 });
        expect(seen.map(({ status }) => status)).toEqual([429, 429, 429]);
        return true;
      });
      expect(waits).toEqual([1, 1]);
    } finally {
      await setPlan(world.sql, "Starter", { rps: 100_000, burst: 100_000 });
    }
  });

  it("reads a Retry-After that is a date, and backs off without one", async () => {
    const soon = new Date(Date.now() + 50_000).toUTCString();
    const { api, waits } = await makeClient({
      respond: (attempt) =>
        [new Response("", { status: 503, headers: { "Retry-After": soon } }), new Response("", { status: 502 })][
          attempt - 1
        ],
    });
    expect((await api.games()).ok).toBe(true);
    expect(waits).toEqual([expect.any(Number), 1]);
    expect(waits[0]).toBeGreaterThan(20);
    expect(waits[0]).toBeLessThanOrEqual(50);
  });

  it("throws immediately if the wait lasts until tomorrow, with the reason", async () => {
    const { api, waits } = await makeClient({ plan: "Starter" });
    await setPlan(world.sql, "Starter", { day: 1 });
    try {
      await api.games();
      const error: unknown = await api.accuracy().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(RateLimitError);
      expect(error).toMatchObject({
        code: "day_quota_exceeded",
        requestId: expect.stringMatching(/^req_/),
        docsUrl: expect.stringContaining("#day_quota_exceeded"),
      });
      await expect(api.games()).rejects.toThrow(RateLimitError); // although nothing changed
      expect(waits.filter((seconds) => seconds > 60)).toEqual([]);
      expect((await api.usage()).day).toMatchObject({ requests: 1, remaining: 0 });
    } finally {
      await setPlan(world.sql, "Starter", { day: 20_000 });
    }
  });

  it("throws an error of its class for each kind of refusal", async () => {
    const { api } = await makeClient();
    const thrown = (call: Promise<unknown>) => call.catch((error: unknown) => error);
    expect(await thrown(api.rounds({ limit: 101 }))).toBeInstanceOf(InvalidRequestError);
    const missing = await thrown(api.games({ house: ["nowhere"] }));
    expect(missing).toBeInstanceOf(NotFoundError);
    expect(missing).toMatchObject({ details: { house: "nowhere" } });
    const poor = await makeClient({ plan: "Starter" });
    await setPlan(world.sql, "Starter", { houses: ["alpha"] });
    expect(await thrown(poor.api.games({ house: ["beta"] }))).toBeInstanceOf(AccessError);
    const body = { ok: false, error: { code: "maintenance", message: "m", docs_url: "d" }, request_id: "r" };
    const away = await makeClient({ respond: () => Response.json(body, { status: 503 }) });
    expect(await thrown(away.api.games())).toBeInstanceOf(UnavailableError);
  });

  it("throws a ConnectionError with the reason if there is no response, or not one of the API", async () => {
    const closed = new Roundhouse({ url: "http://127.0.0.1:9", key: "k", attempts: 2, wait: () => Promise.resolve() });
    await expect(closed.games()).rejects.toThrow(
      /^no response from http:\/\/127\.0\.0\.1:9: .*(?:ECONNREFUSED|bad port)/,
    );
    for (const status of [200, 404]) {
      const { api } = await makeClient({ respond: () => new Response("<html>proxy</html>", { status }) });
      await expect(api.games()).rejects.toThrow(ConnectionError);
    }
  });

  it("does not repeat a call that its caller aborted", async () => {
    const { api, seen } = await makeClient();
    await expect(api.games({}, { signal: AbortSignal.abort() })).rejects.toThrow(/abort/i);
    expect(seen).toEqual([]);
  });
});
