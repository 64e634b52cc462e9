import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TIMES } from "../../src/api/times.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { eventually } from "../support/eventually.ts";
import { makeKey, makeWorld, PATIENT, type World } from "./world.ts";

const USAGE = "/api/v1/usage";
const CALLERS_AT_ONCE = 25;
const MOST_AT_ONCE = 4;

let world: World;
let holder: Sql;

beforeAll(async () => {
  world = await makeWorld({}, { connections: MOST_AT_ONCE + 1 });
  holder = connect(world.databaseUrl, { name: "holder", max: 1 });
});
afterAll(async () => {
  await holder.end();
  await world.close();
});

/** Reads of `/usage` that run at the server, or wait there for a lock. */
async function running(): Promise<number> {
  const [row] = await world.sql<{ n: number }[]>`
    select count(*)::integer as n
    from pg_stat_activity
    where datname = current_database()
      and application_name like 'roundhouse api%'
      and query like '%dayResetsAt%'
      and state <> 'idle'`;
  return row?.n ?? 0;
}

/** Keeps every read of `/usage` from ending until `work` is done. `quotas` stays free: looking up a key reads it too. */
async function whileReadsAreHeld(work: () => Promise<void>): Promise<void> {
  await holder.begin(async (tx) => {
    await tx`lock table usage_counts in access exclusive mode`;
    await work();
  });
}

const ask = (signal?: AbortSignal, of = world) =>
  fetch(of.api.url + USAGE, { headers: { "X-Api-Key": world.key }, ...(signal && { signal }) });

describe("reads of /usage", () => {
  it("are at most four at the same time, which leaves connections to other callers, and end when their clients leave", async () => {
    const etag = (await world.get("/api/v1/games")).headers.get("etag") ?? "";
    const others = await Promise.all(
      Array.from({ length: CALLERS_AT_ONCE }, (_, n) => makeKey(world.sql, `other${n}@example.com`, "Pro")),
    );
    await whileReadsAreHeld(async () => {
      const leaving = new AbortController();
      const left = Array.from({ length: CALLERS_AT_ONCE }, () => ask(leaving.signal).catch(() => null));
      await eventually(async () => expect(await running()).toBe(MOST_AT_ONCE));
      // each of them is looked up; counting a call would wait for the table too
      for (const key of others) {
        const headers = { "X-Api-Key": key, "If-None-Match": etag };
        expect((await world.get("/api/v1/games", { headers })).status).toBe(304);
      }
      expect(await running()).toBeLessThanOrEqual(MOST_AT_ONCE);
      leaving.abort();
      await Promise.all(left);
      await eventually(async () => expect(await running()).toBe(0));
    });
    expect((await ask()).status).toBe(200);
  });

  it("are refused after having waited too long, and end at the server", async () => {
    const hasty = await makeWorld({}, { on: world, times: { ...PATIENT, usageMs: TIMES.usageMs } });
    await whileReadsAreHeld(async () => {
      const asked = Array.from({ length: CALLERS_AT_ONCE }, async () => (await ask(undefined, hasty)).status);
      expect(new Set(await Promise.all(asked))).toEqual(new Set([503]));
      await eventually(async () => expect(await running()).toBe(0));
    });
    await eventually(async () => expect((await ask(undefined, hasty)).status).toBe(200));
    await hasty.close();
    expect(hasty.lines.filter((line) => line.includes("fault of ours"))).toEqual([]);
  });
});
