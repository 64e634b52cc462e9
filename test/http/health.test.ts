import express from "express";
import pino from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addHealth, type Check, NotReady } from "../../src/http/health.ts";
import { openServer } from "../../src/http/http.ts";
import { eventually } from "../support/eventually.ts";
import { addRounds, CHECKS, gamesBody, makeWorld, type World } from "../api/world.ts";

let world: World;
let postgres: Check["isGood"] = CHECKS.postgres.isGood;
let looks = 0;

beforeAll(async () => {
  const checks = {
    ...CHECKS,
    postgres: {
      required: true,
      isGood() {
        looks++;
        return postgres();
      },
    },
  };
  world = await makeWorld({}, { checks });
});
afterAll(() => world.close());

const ask = async (path: string) => {
  const response = await fetch(world.api.url + path);
  return { status: response.status, body: await response.json() };
};

describe("/healthz", () => {
  it("returns 200 and the version, without a key", async () => {
    expect(await ask("/healthz")).toEqual({ status: 200, body: { ok: true, version: "1.2.3" } });
  });
});

describe("/readyz", () => {
  it("is ok if all required checks are good, and reports the rest", async () => {
    const checks = { postgres: true, redis: false, migrations: true, polling: false };
    expect(await ask("/readyz")).toEqual({ status: 200, body: { ok: true, checks } });
  });

  it.each([
    ["says no", () => Promise.resolve(false)],
    ["fails", () => Promise.reject(new Error("the server is away"))],
    ["does not answer", () => new Promise<boolean>(() => undefined)],
  ])("is 503 while a required check %s", async (_, isGood) => {
    postgres = isGood;
    await eventually(async () =>
      expect(await ask("/readyz")).toMatchObject({ status: 503, body: { ok: false, checks: { postgres: false } } }),
    );
    postgres = CHECKS.postgres.isGood;
    await eventually(async () => expect(await ask("/readyz")).toMatchObject({ status: 200 }));
  });

  it("names the problem that a check found, and keeps its details for the log", async () => {
    postgres = () => Promise.reject(new NotReady("2 of 12 houses that are due are not polled", "alpha, beta"));
    const problems = { postgres: "2 of 12 houses that are due are not polled" };
    await eventually(async () => expect(await ask("/readyz")).toMatchObject({ status: 503, body: { problems } }));
    postgres = CHECKS.postgres.isGood;
    await eventually(async () => expect((await ask("/readyz")).body).not.toHaveProperty("problems"));
    expect(world.lines.filter((line) => line.includes("are not polled (alpha, beta)"))).toHaveLength(1);
  });

  it("is never stored by a cache", async () => {
    for (const path of ["/healthz", "/readyz"]) {
      expect((await fetch(world.api.url + path)).headers.get("cache-control")).toBe("no-store");
    }
  });

  it("does not start ever more checks of a database that does not respond, and is 503 meanwhile", async () => {
    const unanswered = Promise.withResolvers<boolean>();
    postgres = () => unanswered.promise;
    const problems = { postgres: "postgres did not respond to the last 5 checks" };
    await eventually(async () => expect(await ask("/readyz")).toMatchObject({ status: 503, body: { problems } }));
    const before = looks;
    postgres = CHECKS.postgres.isGood;
    unanswered.resolve(true);
    await eventually(async () => expect(await ask("/readyz")).toMatchObject({ status: 200 }));
    expect(looks).toBe(before + 1);
  });

  it("logs why a check failed, once", () => {
    expect(
      world.lines.filter((line) => line.includes("the health check postgres failed: the server is away")),
    ).toHaveLength(1);
  });

  it("checks at most once a second, however many requests arrive", async () => {
    let [now, checked] = [0, 0];
    const isGood = () => Promise.resolve(++checked > 0);
    const app = express();
    const checks = { ...CHECKS, postgres: { required: true, isGood } };
    const log = pino({ level: "silent" });
    addHealth(app, { version: "1.2.3", checks, isDraining: () => false }, log, () => now);
    const address = { host: "127.0.0.1", port: 0, variable: "PORT" } as const;
    const server = await openServer(app, address, () => "", log);
    const askMany = () => Promise.all(Array.from({ length: 50 }, () => fetch(`${server.url}/readyz`)));
    for (const [at, times] of [
      [0, 1],
      [1_000, 1],
      [1_001, 2],
    ] as const) {
      now = at;
      await askMany();
      expect([at, checked]).toEqual([at, times]);
    }
    await server.close();
  });

  it("is 503 from the moment the end is asked for, while everything is still answered", async () => {
    world.api.draining();
    expect(await ask("/readyz")).toMatchObject({ status: 503, body: { ok: false, checks: { postgres: true } } });
    expect(await ask("/healthz")).toMatchObject({ status: 200 });
    expect((await world.get("/api/v1/games")).status).toBe(200);
  });
});

describe("a start", () => {
  it("can wait until callers find rounds of every table that is polled", async () => {
    expect(world.api.hasRounds()).toBe(false);
    await addRounds(world.sql, "alpha/crash/global", [{ id: "1" }]);
    await addRounds(world.sql, "beta/crash/eu", [{ id: "1" }]);
    await world.sql`update houses set paused_at = now(), paused_by = 'ana', pause_reason = 'x' where id = 'gamma'`;
    await world.sql`update table_heads set version = version + 1, changed_at = clock_timestamp()`;
    await world.sql`select pg_notify('roundhouse_published', '')`;
    await eventually(async () => {
      const { games } = gamesBody.parse(await (await world.get("/api/v1/games")).json());
      expect(games.map(({ buffered_rounds }) => buffered_rounds)).toEqual([1, 0, 1, 0]);
      expect(games.at(-1)?.status).toBe("paused");
      return true;
    });
    expect(world.api.hasRounds()).toBe(false);
    await addRounds(world.sql, "alpha/dice/eu", [{ id: "1" }]);
    await eventually(() => world.api.hasRounds());
  });
});
