import { fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { ROLES } from "../../src/db/roles/role-grants.ts";
import { withRole } from "../../src/db/roles/take-role.ts";
import { listKeyDays } from "../../src/usage/by-key-store.ts";
import { listEndpointDays } from "../../src/usage/daily-store.ts";
import { listDueDays, listUsageDifferences } from "../../src/usage/days-store.ts";
import { consumeCalls, readUsage } from "../../src/usage/store.ts";
import { openTestDatabase } from "../support/database.ts";

const ENDPOINTS = ["games", "rounds", "forecasts"] as const;

const { sql, url } = await openTestDatabase();

beforeAll(async () => {
  await sql`select make_day_partitions('2026-01-30', 4)`;
});

/** An account with that many keys of a plan without limits. */
async function makeAccount(on: Sql, keys = 1): Promise<{ accountId: bigint; keyIds: bigint[] }> {
  const email = `${crypto.randomUUID()}@example.com`;
  const account = await createAccount(on, email);
  if (!account.ok) throw new Error(account.problem);
  const keyIds: bigint[] = [];
  for (let n = 0; n < keys; n++) {
    const key = await createKey(on, { email, plan: "Max" });
    if (!key.ok) throw new Error(key.problem);
    keyIds.push(key.id);
  }
  return { accountId: account.id, keyIds };
}

/** What is counted, and what the facts add up to; each line is a day, a key, an endpoint and its calls. */
async function countsAndFacts(on: Sql, accountId: bigint): Promise<{ counts: string[]; facts: string[] }> {
  const counts = await on<{ line: string }[]>`
    select concat_ws(' ', day, key_id, endpoint, n) as line
    from usage_counts
    where account_id = ${accountId}
    order by day, key_id, endpoint`;
  const facts = await on<{ line: string }[]>`
    select concat_ws(' ', (minute at time zone 'UTC')::date, key_id, endpoint, sum(n)) as line
    from usage_facts
    where account_id = ${accountId}
    group by (minute at time zone 'UTC')::date, key_id, endpoint
    order by (minute at time zone 'UTC')::date, key_id, endpoint`;
  return { counts: counts.map(({ line }) => line), facts: facts.map(({ line }) => line) };
}

async function expectEqual(on: Sql, accountId: bigint): Promise<string[]> {
  const { counts, facts } = await countsAndFacts(on, accountId);
  expect(counts).toEqual(facts);
  expect(counts).not.toEqual([]);
  return counts;
}

describe("counts of calls", () => {
  it("equal the facts after several pools metered the same keys, with batches that were rolled back", async () => {
    const [one, two] = [await makeAccount(sql, 3), await makeAccount(sql, 2)];
    const keyIds = [...one.keyIds, ...two.keyIds];
    const pools = [1, 2, 3, 4].map((n) => connect(url, { name: `meter ${n}`, max: 2 }));
    try {
      let admitted = 0;
      await Promise.all(
        pools.map(async (pool, place) => {
          for (let n = 0; n < 40; n++) {
            // each pool has the keys in another order, so that batches meet on the same rows
            const calls = Array.from({ length: 1 + ((n * 7 + place) % 9) }, (_, at) => ({
              keyId: keyIds[(n + place * 2 + at * (place + 1)) % keyIds.length] ?? 0n,
              endpoint: ENDPOINTS[(n + at) % ENDPOINTS.length] ?? "games",
            }));
            if (n % 4 === 0) {
              await expect(consumeCalls(pool, calls, new Date(Date.now() - 60_000))).rejects.toThrow(/deadline/);
            }
            if (n % 5 === 0) {
              const abandoned = pool.begin(async (tx) => {
                await consumeCalls(tx as unknown as Sql, calls);
                throw new Error("rolled back");
              });
              await expect(abandoned).rejects.toThrow("rolled back");
            }
            const verdicts = await consumeCalls(pool, calls);
            expect(new Set(verdicts.map(({ outcome }) => outcome))).toEqual(new Set(["ok"]));
            admitted += verdicts.length;
          }
        }),
      );
      const lines = [...(await expectEqual(sql, one.accountId)), ...(await expectEqual(sql, two.accountId))];
      expect(lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0)).toBe(admitted);
      for (const day of await listDueDays(sql)) expect(await listUsageDifferences(sql, day)).toEqual([]);
    } finally {
      await Promise.all(pools.map((pool) => pool.end()));
    }
  });

  it("equal the facts of two processes that meter one key at the same time", async () => {
    const { accountId, keyIds } = await makeAccount(sql);
    const script = path.join(import.meta.dirname, "meter-process.ts");
    const processes = [1, 2].map(() => fork(script, [url, String(keyIds[0]), "3000"]));
    await Promise.all(processes.map((one) => once(one, "message")));
    for (const one of processes) one.send("go");
    const admitted = await Promise.all(processes.map(async (one) => Number((await once(one, "message"))[0])));
    expect(admitted).toEqual([3_000, 3_000]);
    await expectEqual(sql, accountId);
    const { dayUsed, endpoints } = await readUsage(sql, accountId, 1);
    expect([dayUsed, endpoints]).toEqual([6_000n, [{ endpoint: "rounds", requests: 6_000n }]]);
  });

  it("belong to the UTC day of their fact, whatever the time zone of the session", async () => {
    const { accountId, keyIds } = await makeAccount(sql);
    await sql.begin(async (tx) => {
      await tx`set local timezone = 'Pacific/Auckland'`;
      await tx`
        insert into usage_facts (minute, key_id, account_id, endpoint, batch, n)
        select minute::timestamptz, ${keyIds[0] ?? 0n}, ${accountId}, 'games', nextval('usage_batches'), n
        from unnest(
          array['2026-01-31 23:58Z', '2026-01-31 23:59Z', '2026-02-01 00:00Z', '2026-02-01 23:59Z', '2026-02-02 00:00Z'],
          array[1, 2, 10, 20, 100]
        ) f (minute, n)`;
    });
    const lines = (await expectEqual(sql, accountId)).map((line) => line.replace(` ${keyIds[0]} `, " key "));
    expect(lines).toEqual(["2026-01-31 key games 3", "2026-02-01 key games 30", "2026-02-02 key games 100"]);
  });

  it("are written in the transaction of the meter, whose role changes neither facts nor counts itself", async () => {
    const { accountId, keyIds } = await makeAccount(sql);
    const api = connect(withRole(url, ROLES.api), { name: "api", max: 1 });
    try {
      for (const n of [3, 4]) {
        await api`select consume_calls(array[${keyIds[0] ?? 0n}::bigint], array['games'], array[${n}::integer])`;
      }
      expect(await expectEqual(sql, accountId)).toHaveLength(1);
      await expect(api`update usage_counts set n = 1`).rejects.toThrow(/permission denied/);
      await expect(api`insert into usage_facts select * from usage_facts`).rejects.toThrow(/permission denied/);
    } finally {
      await api.end();
    }
  });
});

describe("a read of usage", () => {
  it("reads no fact, though there are 300,000 of them today", async () => {
    const { accountId, keyIds } = await makeAccount(sql);
    await sql`
      insert into usage_facts (minute, key_id, account_id, endpoint, batch, n)
      select date_trunc('day', now(), 'UTC'), ${keyIds[0] ?? 0n}, ${accountId}, 'rounds', nextval('usage_batches'), 1
      from generate_series(1, 300000)`;
    const reader = connect(url, { name: "reader", max: 1 });
    try {
      const before = await factReads();
      expect((await readUsage(reader, accountId, 31)).endpoints).toEqual([{ endpoint: "rounds", requests: 300_000n }]);
      expect((await listKeyDays(reader, accountId, 92)).map(({ requests }) => requests)).toEqual([300_000n]);
      expect((await listEndpointDays(reader, accountId, 92)).map(({ requests }) => requests)).toEqual([300_000n]);
      await reader`select pg_stat_force_next_flush()`;
      await reader`select 1`;
      expect(await factReads()).toEqual(before);
      // the counters do move when facts are read
      await reader`select sum(n) from usage_facts where account_id = ${accountId}`;
      await reader`select pg_stat_force_next_flush()`;
      await reader`select 1`;
      expect(await factReads()).not.toEqual(before);
    } finally {
      await reader.end();
    }
  });
});

/** Scans of the facts, and rows that they read, since the server started. */
async function factReads(): Promise<object> {
  const [row] = await sql`
    select
      sum(seq_scan + coalesce(idx_scan, 0))::float8 as scans,
      sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 as rows
    from pg_stat_user_tables
    where relname ~ '^usage_facts_[0-9]{8}$'`;
  return { ...row };
}
