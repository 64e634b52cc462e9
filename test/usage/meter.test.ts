import { fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { connect } from "../../src/db/client.ts";
import { Meter } from "../../src/usage/meter.ts";
import { consumeCalls, readUsage } from "../../src/usage/store.ts";
import { openTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";

const { sql, url } = await openTestDatabase();

let made = 0;

/** An account with a key and a plan of these limits, of its own for each test. */
async function makeCaller(limits: { day?: number; month?: number; ceiling?: number } = {}) {
  made += 1;
  const plan = `plan-${made}`;
  await sql`
    insert into plans (name, position, day_limit, month_limit, day_ceiling, burst_per_second, burst, price_micros, days)
    values (
      ${plan}, 9, ${limits.day ?? null}, ${limits.month ?? null}, ${limits.ceiling ?? null}, 1000, 1000, 0, 30
    )`;
  const [account] = await sql<{ id: bigint }[]>`
    insert into accounts (email, verified_at) values (${`caller-${made}@example.com`}, now()) returning id`;
  const accountId = account?.id ?? 0n;
  await sql`insert into entitlements (account_id, plan) values (${accountId}, ${plan})`;
  return { accountId, plan, keyId: await makeKey(accountId) };
}

async function makeKey(accountId: bigint): Promise<bigint> {
  made += 1;
  const [key] = await sql<{ id: bigint }[]>`
    insert into keys (account_id, name, sha256, last4)
    values (${accountId}, 'test', sha256(${`key-${made}`}::bytea), 'abcd')
    returning id`;
  return key?.id ?? 0n;
}

const outcomes = async (calls: { keyId: bigint; endpoint: string }[]) =>
  (await consumeCalls(sql, calls)).map(({ outcome }) => outcome);
const times = (n: number, call: { keyId: bigint; endpoint: string }) => Array.from({ length: n }, () => call);

describe("one batch of the meter", () => {
  it("admits calls in order up to the day's limit and counts only admitted ones", async () => {
    const { keyId, accountId } = await makeCaller({ day: 3 });
    const verdicts = await consumeCalls(sql, times(5, { keyId, endpoint: "rounds" }));
    expect(verdicts.map(({ outcome }) => outcome)).toEqual([
      "ok",
      "ok",
      "ok",
      "day_quota_exceeded",
      "day_quota_exceeded",
    ]);
    expect(verdicts.map(({ dayUsed }) => dayUsed)).toEqual([1n, 2n, 3n, 3n, 3n]);
    expect(await readUsage(sql, accountId, 1)).toMatchObject({ dayUsed: 3n, monthUsed: 3n });
  });

  it("keeps two keys of one account under one quota, in the order of their calls", async () => {
    const { keyId, accountId } = await makeCaller({ day: 3 });
    const other = await makeKey(accountId);
    const calls = [keyId, other, other, keyId].map((id) => ({ keyId: id, endpoint: "games" }));
    expect(await outcomes(calls)).toEqual(["ok", "ok", "ok", "day_quota_exceeded"]);
  });

  it("returns for each call the use with it, also if calls of others are between", async () => {
    const one = await makeCaller({ day: 10, month: 3 });
    const other = await makeCaller();
    const [rounds, games] = [
      { keyId: one.keyId, endpoint: "rounds" },
      { keyId: one.keyId, endpoint: "games" },
    ];
    const between = { keyId: other.keyId, endpoint: "rounds" };
    const verdicts = await consumeCalls(sql, [rounds, rounds, between, games, games, between, rounds]);
    expect(verdicts.map(({ outcome, dayUsed }) => [outcome, dayUsed])).toEqual([
      ["ok", 1n],
      ["ok", 2n],
      ["ok", 1n],
      ["ok", 3n],
      ["month_quota_exceeded", 3n],
      ["ok", 2n],
      ["month_quota_exceeded", 3n],
    ]);
    const { endpoints } = await readUsage(sql, one.accountId, 1);
    expect(endpoints).toEqual([
      { endpoint: "games", requests: 1n },
      { endpoint: "rounds", requests: 2n },
    ]);
  });

  it("admits nothing to an account whose plan has shrunk below what it has used", async () => {
    const { keyId, plan } = await makeCaller({ day: 5 });
    await consumeCalls(sql, times(4, { keyId, endpoint: "rounds" }));
    await sql`update plans set day_limit = 2 where name = ${plan}`;
    const verdicts = await consumeCalls(sql, times(2, { keyId, endpoint: "rounds" }));
    expect(verdicts.map(({ outcome, dayUsed }) => [outcome, dayUsed])).toEqual([
      ["day_quota_exceeded", 4n],
      ["day_quota_exceeded", 4n],
    ]);
  });

  it("keeps accounts apart", async () => {
    const one = await makeCaller({ day: 1 });
    const two = await makeCaller({ day: 2 });
    const calls = [one, two, one, two].map(({ keyId }) => ({ keyId, endpoint: "games" }));
    expect(await outcomes(calls)).toEqual(["ok", "ok", "day_quota_exceeded", "ok"]);
  });

  it("distinguishes the month's limit and the hidden ceiling from the day's", async () => {
    const monthly = await makeCaller({ day: 10, month: 1 });
    expect(await outcomes(times(2, { keyId: monthly.keyId, endpoint: "games" }))).toEqual([
      "ok",
      "month_quota_exceeded",
    ]);
    const max = await makeCaller({ ceiling: 1 });
    expect(await outcomes(times(2, { keyId: max.keyId, endpoint: "games" }))).toEqual([
      "ok",
      "service_ceiling_reached",
    ]);
  });

  it("applies the hidden ceiling only to a plan without a daily limit", async () => {
    const both = await makeCaller({ day: 3, ceiling: 1 });
    const call = { keyId: both.keyId, endpoint: "games" };
    expect(await outcomes([call])).toEqual(["ok"]); // the first call of a day, by consume_runs
    expect(await outcomes([call])).toEqual(["ok"]); // one run, by consume_calls
    expect(await outcomes(times(2, call))).toEqual(["ok", "day_quota_exceeded"]);
    const other = await makeCaller({ day: 3, ceiling: 1 });
    const among = times(4, { keyId: other.keyId, endpoint: "games" });
    expect(await outcomes([call, ...among])).toEqual(["day_quota_exceeded", "ok", "ok", "ok", "day_quota_exceeded"]);
  });

  it("re-checks key, account and plan", async () => {
    const revoked = await makeCaller();
    const expired = await makeCaller();
    const suspended = await makeCaller();
    const over = await makeCaller();
    const none = await makeCaller();
    await sql`update keys set revoked_at = now() where id = ${revoked.keyId}`;
    await sql`update keys set expires_at = now() where id = ${expired.keyId}`;
    await sql`update accounts set suspended_at = now(), suspend_reason = 'test' where id = ${suspended.accountId}`;
    await sql`
      update entitlements set starts_at = now() - interval '2 days', ends_at = now() - interval '1 day'
      where account_id = ${over.accountId}`;
    await sql`delete from entitlements where account_id = ${none.accountId}`;
    const calls = [revoked, expired, suspended, over, none].map(({ keyId }) => ({ keyId, endpoint: "games" }));
    expect(await outcomes([...calls, { keyId: 999_999n, endpoint: "games" }])).toEqual([
      "revoked_api_key",
      "expired_api_key",
      "account_suspended",
      "plan_expired",
      "no_active_plan",
      "invalid_api_key",
    ]);
    expect(
      await sql`select from usage_facts where key_id = any (${calls.map(({ keyId }) => String(keyId))}::bigint[])`,
    ).toEqual([]);
  });

  it("returns when it decided, which determines the day of a call", async () => {
    const { keyId } = await makeCaller();
    const [clock] = await sql<{ before: number }[]>`select extract(epoch from now())::float8 * 1000 as before`;
    const [verdict] = await consumeCalls(sql, [{ keyId, endpoint: "games" }]);
    const sinceMs = (verdict?.decidedAtMs ?? 0) - (clock?.before ?? 0);
    expect(sinceMs).toBeGreaterThan(0);
    expect(sinceMs).toBeLessThan(60_000);
  });

  it("counts nothing after its deadline, and leaves no trace", async () => {
    const { keyId, accountId } = await makeCaller();
    const calls = times(3, { keyId, endpoint: "games" });
    await expect(consumeCalls(sql, calls, new Date(Date.now() - 60_000))).rejects.toThrow(/before their deadline/);
    expect(await sql`select from quotas where account_id = ${accountId}`).toEqual([]);
    expect(await sql`select from usage_facts where account_id = ${accountId}`).toEqual([]);
    const verdicts = await consumeCalls(sql, calls, new Date(Date.now() + 60_000));
    expect(verdicts.map(({ dayUsed }) => dayUsed)).toEqual([1n, 2n, 3n]);
  });

  it("judges a batch of one run as it judges the same run among others, whatever is wrong or used up", async () => {
    const limits = [
      { day: 3 },
      { day: 9, month: 3 },
      { ceiling: 3 },
      { day: 9, ceiling: 3 },
      { day: 3, month: 3 },
      { day: 100 },
      {},
    ];
    const states = [
      sql`select`,
      sql`update plans set day_limit = 1 where name like 'plan-%' and day_limit = 3`,
      sql`update keys set revoked_at = now() where name = 'test'`,
    ];
    const callers = [];
    for (const limit of limits) callers.push([await makeCaller(limit), await makeCaller(limit)] as const);
    const shown = (verdicts: Awaited<ReturnType<typeof consumeCalls>>) =>
      verdicts.map((verdict) => ({ ...verdict, decidedAtMs: 0 }));
    for (const change of states) {
      await change;
      for (const size of [2, 4]) {
        for (const [alone, among] of callers) {
          const single = await consumeCalls(sql, times(size, { keyId: alone.keyId, endpoint: "games" }));
          const other = { keyId: 999_999n, endpoint: "games" };
          const together = await consumeCalls(sql, [other, ...times(size, { keyId: among.keyId, endpoint: "games" })]);
          expect(shown(single)).toEqual(shown(together.slice(1)));
        }
      }
    }
  });

  it("does not deadlock with another batch at the first calls of a day", async () => {
    const [first, second] = [await makeCaller(), await makeCaller()];
    const games = (...keyIds: bigint[]) => keyIds.map((keyId) => ({ keyId, endpoint: "games" }));
    await outcomes(games(first.keyId, second.keyId));
    await sql`
      delete from quotas
      where account_id in (${first.accountId}, ${second.accountId}) and length(period) = 10`;
    const pools = ["both", "second"].map((name) => connect(url, { name: `meter of ${name}`, max: 1 }));
    const waits = (name: string) =>
      eventually(async () => {
        const found = await sql`
          select
          from pg_stat_activity
          where datname = current_database() and application_name like ${`%meter of ${name}`} and wait_event_type = 'Lock'`;
        return found.length === 1;
      });
    try {
      const batches: Promise<{ outcome: string }[]>[] = [];
      await sql.begin(async (tx) => {
        await tx`select from quotas where account_id = ${first.accountId} for update`; // its month
        batches.push(consumeCalls(pools[0]!, games(first.keyId, second.keyId)));
        await waits("both");
        batches.push(consumeCalls(pools[1]!, games(second.keyId)));
        await waits("second");
      });
      expect((await Promise.all(batches)).flat().map(({ outcome }) => outcome)).toEqual(["ok", "ok", "ok"]);
    } finally {
      await Promise.all(pools.map((pool) => pool.end()));
    }
  });

  it("keeps the facts by key, endpoint and minute", async () => {
    const { keyId, accountId } = await makeCaller();
    await consumeCalls(sql, [...times(3, { keyId, endpoint: "rounds" }), ...times(2, { keyId, endpoint: "games" })]);
    const { endpoints } = await readUsage(sql, accountId, 1);
    expect(endpoints).toEqual([
      { endpoint: "games", requests: 2n },
      { endpoint: "rounds", requests: 3n },
    ]);
  });
});

describe("the meter of a process", () => {
  it("admits exactly the quota of 20,000 concurrent calls in two processes", async () => {
    const { keyId, accountId } = await makeCaller({ day: 5000 });
    const script = path.join(import.meta.dirname, "meter-process.ts");
    const processes = [1, 2].map(() => fork(script, [url, String(keyId), "10000"]));
    await Promise.all(processes.map((one) => once(one, "message")));
    for (const one of processes) one.send("go");
    const admitted = await Promise.all(processes.map(async (one) => Number((await once(one, "message"))[0])));
    expect(admitted.reduce((sum, n) => sum + n)).toBe(5000);
    expect(await readUsage(sql, accountId, 1)).toMatchObject({ dayUsed: 5000n, monthUsed: 5000n });
  });

  it("puts calls that wait together in one batch", async () => {
    const { keyId } = await makeCaller();
    const batches: number[] = [];
    const meter = new Meter((calls) => {
      batches.push(calls.length);
      return consumeCalls(sql, calls);
    });
    await Promise.all(times(100, { keyId, endpoint: "games" }).map((call) => meter.consume(call)));
    expect(batches).toEqual([100]);
  });

  it("refuses the calls of a batch that fails, and counts those who wait behind it", async () => {
    const { keyId } = await makeCaller();
    const call = { keyId, endpoint: "games" };
    const failures = [new Error("first"), null];
    const gate = Promise.withResolvers<void>();
    const meter = new Meter(async (calls) => {
      await gate.promise;
      const failure = failures.shift();
      if (failure) throw failure;
      return consumeCalls(sql, calls);
    });
    const first = meter.consume(call);
    await new Promise((next) => setImmediate(() => setImmediate(next))); // it is on its way
    const behind = meter.consume(call);
    gate.resolve();
    await expect(first).rejects.toThrow("first");
    expect(await behind).toMatchObject({ outcome: "ok", dayUsed: 1n });
  });

  it("refuses a call that waits too long behind a batch while that is still on its way, and never sends it", async () => {
    const { keyId } = await makeCaller();
    const call = { keyId, endpoint: "games" };
    const gate = Promise.withResolvers<void>();
    const sent: { calls: number; oldestAt: number }[] = [];
    const now = 1_000_000;
    const meter = new Meter(
      async (calls, oldestAt) => {
        sent.push({ calls: calls.length, oldestAt });
        await gate.promise;
        return consumeCalls(sql, calls);
      },
      { ms: 60_000, nowMs: () => now },
    );
    const first = [now - 1_000, now - 2_000, now].map((begunAt) => meter.consume(call, begunAt));
    await new Promise((next) => setImmediate(() => setImmediate(next))); // they are on their way
    const [young, old] = [meter.consume(call, now), meter.consume(call, now - 60_001)];
    await expect(old).rejects.toThrow("waited 60000 ms to be counted");
    gate.resolve();
    const verdicts = await Promise.all([...first, young]);
    expect(verdicts.map(({ dayUsed }) => dayUsed)).toEqual([1n, 2n, 3n, 4n]);
    expect(sent).toEqual([
      { calls: 3, oldestAt: now - 2_000 },
      { calls: 1, oldestAt: now },
    ]);
  });

  it("refuses the calls of a batch without a response of the database, and continues afterwards", async () => {
    const { keyId } = await makeCaller();
    const pool = connect(url, { name: "cut", max: 1 });
    const meter = new Meter((calls) => consumeCalls(pool, calls));
    await meter.consume({ keyId, endpoint: "games" });
    await sql`
      select pg_terminate_backend(pid)
      from pg_stat_activity
      where datname = current_database() and application_name = 'roundhouse cut'`;
    // the driver may hand the dead connection to more than one statement before it opens another
    let answered = 1n;
    const last = await eventually(async () => {
      const verdict = await meter.consume({ keyId, endpoint: "games" });
      answered += 1n;
      return verdict;
    });
    expect(last).toMatchObject({ outcome: "ok", dayUsed: answered });
    await pool.end();
  });
});
