import { afterAll, beforeAll, describe, expect, it } from "vitest";
import rollUpUsage from "../../jobs/roll-up-usage.ts";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { ROLES } from "../../src/db/roles/role-grants.ts";
import { withRole } from "../../src/db/roles/take-role.ts";
import { dropPartition, makePartitions } from "../../src/housekeeping/store.ts";
import { findUsageBehind, listUsageDifferences, sumNextHour } from "../../src/usage/days-store.ts";
import { consumeCalls, readUsage } from "../../src/usage/store.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";

const { sql, url } = await openTestDatabase();
let worker: Sql;
let of: { account: bigint; key: bigint };

beforeAll(async () => {
  worker = connect(withRole(url, ROLES.worker), { name: "worker" });
  await sql`select make_day_partitions('2026-01-01', 20)`;
  const account = await createAccount(sql, "caller@example.com");
  const key = await createKey(sql, { email: "caller@example.com", plan: "Max" });
  if (!account.ok || !key.ok) throw new Error("expected an account with a key");
  of = { account: account.id, key: key.id };
});
afterAll(async () => {
  await worker.end();
});

/** Stores calls as the meter would have at that time. */
async function addCalls(minute: string, n: number): Promise<void> {
  await sql`
    insert into usage_facts (minute, key_id, account_id, endpoint, batch, n)
    values (${minute}, ${of.key}, ${of.account}, 'games', nextval('usage_batches'), ${n})`;
  await sql`
    insert into quotas (account_id, period, used)
    values (${of.account}, ${minute.slice(0, 10)}, ${n})
    on conflict (account_id, period) do update set used = quotas.used + excluded.used`;
}

const run = async (day: string) => rollUpUsage.run({ day }, testContext(worker).context);
const openAlerts = async () =>
  (await sql<{ subject: string }[]>`select subject from alerts where closed_at is null order by 1`).map(
    ({ subject }) => subject,
  );

describe("the sums of a day's facts", () => {
  it("move by an hour at a time, and a comparison reads no fact before them", async () => {
    const day = "2026-01-05";
    await addCalls(`${day}T00:30:00Z`, 3);
    await addCalls(`${day}T12:00:00Z`, 4);
    await sumNextHour(worker, day);
    await sumNextHour(worker, day);
    const [row] = await sql`select summed_to from usage_days where day = ${day}`;
    expect(row).toEqual({ summed_to: new Date(`${day}T02:00:00Z`) });
    await sql`delete from usage_facts where minute < ${`${day}T01:00:00Z`} and minute >= ${day}::timestamptz`;
    expect(await listUsageDifferences(worker, day)).toEqual([]);
  });

  it("are made again before a day is closed, which finds a fact that was lost after it was summed", async () => {
    const day = "2026-01-06";
    await addCalls(`${day}T00:30:00Z`, 3);
    await addCalls(`${day}T12:00:00Z`, 4);
    for (let hour = 0; hour < 24; hour++) await sumNextHour(worker, day);
    await sql`update usage_days set is_recount = false where day = ${day}`; // it was compared while it lasted
    await sql`delete from usage_facts where minute = ${`${day}T00:30:00Z`}`;
    expect(await run(day)).toEqual({ differences: 1, behind: 0 });
    expect(await openAlerts()).toEqual([`${day} account ${of.account}`]);
    await sql`
      insert into usage_facts (minute, key_id, account_id, endpoint, batch, n)
      values (${`${day}T00:30:00Z`}, ${of.key}, ${of.account}, 'games', nextval('usage_batches'), 3)`;
    await sql`update usage_counts set n = n - 3 where day = ${day}`; // the trigger counted it a second time
    expect(await run(day)).toEqual({ differences: 0, behind: 0 });
    expect(await openAlerts()).toEqual([]);
    const [row] = await sql`select is_closed from usage_days where day = ${day}`;
    expect(row).toEqual({ is_closed: true });
    expect(await sql`select from usage_sums where day = ${day}`).toEqual([]);
  });

  it("begin again when a closed day gets another fact", async () => {
    const day = "2026-01-07";
    await addCalls(`${day}T10:00:00Z`, 5);
    await run(day);
    expect(await sql`select from usage_days where day = ${day} and is_closed`).toHaveLength(1);
    await addCalls(`${day}T11:00:00Z`, 2);
    expect(await sql`select from usage_days where day = ${day}`).toHaveLength(0);
    expect(await run(day)).toEqual({ differences: 0, behind: 0 });
  });

  it("raise a problem for each day that was not compared for half an hour", async () => {
    const days = ["2026-01-10", "2026-01-11", "2026-01-12", "2026-01-13"];
    for (const day of days) await addCalls(`${day}T10:00:00Z`, 1_000);
    const behind = async () => (await findUsageBehind(worker)).map(({ subject }) => subject);
    expect(await behind()).toEqual(expect.arrayContaining(days));
    for (const day of days) await run(day);
    expect((await behind()).filter((day) => days.includes(day))).toEqual([]);
  });
});

describe("a day without a partition", () => {
  it("refuses no call; its calls are counted, reported, and moved once the partition is made", async () => {
    const [clock] = await sql<{ day: string; name: string }[]>`
      select d::text as day, 'usage_facts_' || to_char(d, 'YYYYMMDD') as name
      from (select (now() at time zone 'UTC')::date as d) c`;
    const { day = "", name = "" } = clock ?? {};
    await sql`drop table ${sql(name)}`;
    const calls = Array.from({ length: 7 }, () => ({ keyId: of.key, endpoint: "rounds" }));
    expect((await consumeCalls(sql, calls)).map(({ outcome }) => outcome)).toEqual(calls.map(() => "ok"));
    expect((await readUsage(sql, of.account, 1)).dayUsed).toBe(7n);
    expect((await findUsageBehind(worker)).map(({ subject }) => subject)).toContain(`partition of ${day}`);
    expect(await run(day)).toEqual({ differences: 0, behind: 0 });
    await makePartitions(worker);
    expect(await sql`select from usage_facts_default`).toEqual([]);
    expect(await sql`select from ${sql(name)}`).toHaveLength(1);
    expect((await findUsageBehind(worker)).map(({ subject }) => subject)).not.toContain(`partition of ${day}`);
    expect(await run(day)).toEqual({ differences: 0, behind: 0 });
    expect((await readUsage(sql, of.account, 1)).dayUsed).toBe(7n);
  });

  it("that is over is dropped, and while a transaction reads the facts it is left for the next hour", async () => {
    const partition = { name: "usage_facts_20260101", parent: "usage_facts", day: "2026-01-01" };
    await sql`insert into uptime_days values ('scheduling', (now() at time zone 'UTC')::date - 2, 1, 1)`;
    await sql.begin(async (tx) => {
      await tx`select count(*) from usage_facts`;
      await expect(dropPartition(worker, partition)).rejects.toThrow(/lock timeout/);
    });
    await dropPartition(worker, partition);
    expect(await sql`select to_regclass('usage_facts_20260101') as there`).toEqual([{ there: null }]);
  });
});

describe("the sums of today, if it is closed", () => {
  it("begin again when a call is counted: the clock was ahead before", async () => {
    const today = sql`(now() at time zone 'UTC')::date`;
    await sql`
      insert into usage_days (day, summed_to, is_closed)
      values (${today}, (${today} + 1)::timestamp at time zone 'UTC', true)
      on conflict (day) do update set is_closed = true`;
    expect(await consumeCalls(sql, [{ keyId: of.key, endpoint: "rounds" }])).toMatchObject([{ outcome: "ok" }]);
    expect(await sql`select from usage_days where is_closed and day = ${today}`).toHaveLength(0);
  });
});
