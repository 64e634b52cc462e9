import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { eventually } from "../support/eventually.ts";
import { makeKey, makeWorld, type World } from "./world.ts";

const USAGE = "/api/v1/usage";
const CALLERS_AT_ONCE = 25;
/** Another caller's calls during a measurement, and how many of them may be 503. */
const CALLS = 50;
const MOST_REFUSED = 10;

let world: World;
let holder: Sql;

beforeAll(async () => {
  world = await makeWorld();
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

const ask = (signal?: AbortSignal) =>
  fetch(world.api.url + USAGE, { headers: { "X-Api-Key": world.key }, ...(signal && { signal }) });

const refusedOf = (statuses: readonly number[]) => statuses.filter((status) => status === 503).length;

describe("reads of /usage", () => {
  it("are at most four at the same time, and end at the server when their clients leave or have waited too long", async () => {
    await whileReadsAreHeld(async () => {
      const leaving = new AbortController();
      const left = Array.from({ length: CALLERS_AT_ONCE }, () => ask(leaving.signal).catch(() => null));
      const stayed = Array.from({ length: CALLERS_AT_ONCE }, async () => (await ask()).status);
      const most = await eventually(async () => (await running()) || undefined);
      expect(most).toBeLessThanOrEqual(4);
      leaving.abort();
      await Promise.all(left);
      expect(new Set(await Promise.all(stayed))).toEqual(new Set([503]));
      await eventually(async () => expect(await running()).toBe(0));
    });
    await eventually(async () => expect((await ask()).status).toBe(200));
    expect(world.lines.filter((line) => line.includes("fault of ours"))).toEqual([]);
  });

  it("of 300,000 calls today, 25 at a time, do not block another caller's calls", async () => {
    const other = await makeKey(world.sql, "other@example.com", "Pro");
    await world.sql`
      insert into usage_facts (minute, key_id, account_id, endpoint, batch, n)
      select date_trunc('day', now(), 'UTC'), k.id, k.account_id, 'rounds', nextval('usage_batches'), 1
      from (select id, account_id from keys where last4 = ${world.key.slice(-4)}) k
      cross join generate_series(1, 300000)`;
    const measure = async () => {
      let isOver = false;
      const pressing = Array.from({ length: CALLERS_AT_ONCE }, async () => {
        while (!isOver) await (await ask()).arrayBuffer();
      });
      const statuses: number[] = [];
      while (statuses.length < CALLS) {
        statuses.push((await world.get("/api/v1/games", { headers: { "X-Api-Key": other } })).status);
      }
      isOver = true;
      await Promise.all(pressing);
      return statuses;
    };
    // a machine that is too busy refuses some, so this is measured up to three times
    let statuses = await measure();
    for (let again = 0; again < 2 && refusedOf(statuses) > MOST_REFUSED; again++) statuses = await measure();
    expect(statuses.filter((status) => ![200, 503].includes(status))).toEqual([]);
    expect(refusedOf(statuses)).toBeLessThanOrEqual(MOST_REFUSED);
  });
});
