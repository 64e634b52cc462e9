import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { setPlan } from "../../src/callers/plan-store.ts";
import { allowSlowness, play, score } from "../api/play.ts";
import { makeKey, makeWorld, type World } from "../api/world.ts";
import { eventually } from "../support/eventually.ts";
import { report } from "./report.ts";
import { roundhouse, RoundhouseError } from "./roundhouse.ts";

const TABLE = "alpha/crash/global";
let world: World;

beforeAll(async () => {
  world = await makeWorld();
  await allowSlowness(world);
  await play(world, TABLE, [150]); // what was there before it was first asked says nothing of its next round
  await play(world, TABLE, [150]);
  await play(world, TABLE, [150]);
  await score(world, "alpha");
});
afterAll(() => world.close());

/** The sample client, and what it sent and got. */
async function makeClient({ plan = "Pro" } = {}) {
  const key = await makeKey(world.sql, `${crypto.randomUUID()}@example.com`, plan);
  const seen: { url: string; status: number }[] = [];
  const waits: number[] = [];
  const api = roundhouse({
    url: world.api.url,
    key,
    async fetch(request) {
      const response = await fetch(request);
      seen.push({ url: request.url.slice(world.api.url.length), status: response.status });
      return response;
    },
    wait(seconds) {
      waits.push(seconds);
      return Promise.resolve();
    },
  });
  return { api, seen, waits };
}

describe("the sample client", () => {
  it("lists every table of the plan", async () => {
    const { api } = await makeClient();
    expect((await api.games()).map(({ house, game, market }) => `${house}/${game}/${market}`)).toEqual([
      "alpha/crash/global",
      "alpha/dice/eu",
      "beta/crash/eu",
      "gamma/rocket/one",
    ]);
  });

  it("shows a forecast beside its baseline and beside what such forecasts have been worth", async () => {
    const { api } = await makeClient();
    await eventually(async () => {
      const lines = report(await api.forecasts(), await api.accuracy("next_color")).split("\n");
      expect(lines).toHaveLength(4);
      expect(lines[0]).toMatch(
        /^alpha\/crash\/global: blue \d+\.\d % \(long run \d+\.\d %\), .*; in 30d 100\.0 % of 1 came as likeliest \(95 %: \d+\.\d % to 100\.0 %; stated \d+\.\d %\), skill unknown$/,
      );
      expect(lines[1]).toBe("alpha/dice/eu: warming_up; nothing measured yet");
      return true;
    });
  });

  it("asks again at no cost while nothing has changed", async () => {
    const { api, seen } = await makeClient();
    const first = await api.games();
    expect(await api.games()).toEqual(first);
    expect(await api.games()).toEqual(first);
    expect(seen.map(({ status }) => status)).toEqual([200, 304, 304]);
    expect((await api.usage()).day.requests).toBe(1);
  });

  it("waits as long as it is told to, three times at most", async () => {
    const { api, seen, waits } = await makeClient({ plan: "Starter" });
    await setPlan(world.sql, "Starter", { rps: 1, burst: 1 });
    try {
      await eventually(async () => {
        seen.length = 0;
        waits.length = 0;
        await expect(api.games()).rejects.toThrow(/^rate_limited: /);
        expect(seen.map(({ status }) => status)).toEqual([429, 429, 429]);
        return true;
      });
      expect(waits).toEqual([expect.any(Number), expect.any(Number)]);
      for (const seconds of waits) expect(seconds).toBeGreaterThanOrEqual(1);
    } finally {
      await setPlan(world.sql, "Starter", { rps: 100_000, burst: 100_000 });
    }
  });

  it("gives up at once where the wait is until tomorrow, and says why", async () => {
    const { api, waits } = await makeClient({ plan: "Starter" });
    await setPlan(world.sql, "Starter", { day: 1 });
    try {
      await api.games();
      const error: unknown = await api.accuracy().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(RoundhouseError);
      expect(error).toMatchObject({ code: "day_quota_exceeded", requestId: expect.stringMatching(/^req_/) });
      expect(waits.filter((seconds) => seconds > 60)).toEqual([]);
      expect((await api.usage()).day).toMatchObject({ requests: 1, remaining: 0 });
    } finally {
      await setPlan(world.sql, "Starter", { day: 20_000 });
    }
  });
});
