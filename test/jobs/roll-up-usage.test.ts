import { beforeAll, describe, expect, it } from "vitest";
import rollUpUsage from "../../jobs/roll-up-usage.ts";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { consumeCalls } from "../../src/usage/store.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";

const { sql } = await openTestDatabase();

beforeAll(async () => {
  await sql`select make_day_partitions('2026-01-01', 60)`;
});

/** An account with that many keys. */
async function makeAccount(keys = 1): Promise<{ account: bigint; keys: bigint[] }> {
  const email = `${crypto.randomUUID()}@example.com`;
  const account = await createAccount(sql, email);
  if (!account.ok) throw new Error(account.problem);
  const made: bigint[] = [];
  for (let n = 0; n < keys; n++) {
    const key = await createKey(sql, { email, plan: "Pro" });
    if (!key.ok) throw new Error(key.problem);
    made.push(key.id);
  }
  return { account: account.id, keys: made };
}

/** Keeps calls as the meter would have at that time: in the facts, and in the quotas of day and month. */
async function addCalls(
  of: { account: bigint; key: bigint | undefined },
  minute: string,
  calls: { endpoint: string; n: number },
): Promise<void> {
  await sql`
    insert into usage_facts (minute, key_id, account_id, endpoint, batch, n)
    values (${minute}, ${of.key ?? 0n}, ${of.account}, ${calls.endpoint}, nextval('usage_batches'), ${calls.n})`;
  await sql`
    insert into quotas (account_id, period, used)
    select ${of.account}, period, ${calls.n}
    from unnest(${[minute.slice(0, 10), minute.slice(0, 7)]}::text[]) as period
    on conflict (account_id, period) do update set used = quotas.used + excluded.used`;
}

async function openAlerts(): Promise<{ subject: string; text: string }[]> {
  return sql<{ subject: string; text: string }[]>`
    select subject, text
    from alerts
    where closed_at is null
    order by opened_at`;
}

describe("roll-up-usage", () => {
  it("finds no difference in a day whose calls of several keys and endpoints were metered around midnight", async () => {
    const { account, keys } = await makeAccount(2);
    const [first, second] = keys;
    await addCalls({ account, key: first }, "2026-01-14T23:59:00Z", { endpoint: "rounds", n: 100 });
    await addCalls({ account, key: first }, "2026-01-15T00:00:00Z", { endpoint: "rounds", n: 3 });
    await addCalls({ account, key: first }, "2026-01-15T00:59:00Z", { endpoint: "games", n: 1 });
    await addCalls({ account, key: second }, "2026-01-15T23:59:00Z", { endpoint: "rounds", n: 7 });
    await addCalls({ account, key: first }, "2026-01-16T00:00:00Z", { endpoint: "rounds", n: 1_000 });
    const { context } = testContext(sql);
    for (const day of ["2026-01-14", "2026-01-15", "2026-01-16"]) {
      expect([day, await rollUpUsage.run({ day }, context)]).toEqual([day, { differences: 0, behind: 0 }]);
    }
  });

  it("raises an alert when calls were moved from one key to another in the counts, though their sum is right", async () => {
    const { account, keys } = await makeAccount(2);
    const [first, second] = keys;
    for (const key of [first, second]) {
      await addCalls({ account, key }, "2026-01-17T12:00:00Z", { endpoint: "games", n: 5 });
    }
    await sql`
      update usage_counts
      set n = case key_id when ${first ?? 0n} then 4 else 6 end
      where account_id = ${account}`;
    const { context } = testContext(sql);
    expect(await rollUpUsage.run({ day: "2026-01-17" }, context)).toMatchObject({ differences: 1 });
    await sql`update usage_counts set n = 5 where account_id = ${account}`;
    expect(await rollUpUsage.run({ day: "2026-01-17" }, context)).toMatchObject({ differences: 0 });
    expect(await openAlerts()).toEqual([]);
  });

  it("of a day without calls does nothing", async () => {
    const { context } = testContext(sql);
    expect(await rollUpUsage.run({ day: "2026-01-02" }, context)).toMatchObject({ differences: 0 });
  });

  it("finds every day that was not compared, however long no worker ran, and each again after ten minutes", async () => {
    const { account, keys } = await makeAccount();
    const days = ["2026-02-10", "2026-02-11", "2026-02-12", "2026-02-13"];
    for (const day of days) {
      await addCalls({ account, key: keys[0] }, `${day}T12:00:00Z`, { endpoint: "games", n: 1_000 });
    }
    const { context } = testContext(sql);
    const due = async () => (await rollUpUsage.sweep?.(context))?.map(({ day }) => day) ?? [];
    expect(await due()).toEqual(expect.arrayContaining(days));
    for (const day of days) expect(await rollUpUsage.run({ day }, context)).toMatchObject({ differences: 0 });
    expect((await due()).filter((day) => days.includes(day))).toEqual([]);
    const [clock] = await sql<{ today: string }[]>`select (now() at time zone 'UTC')::date::text as today`;
    const today = clock?.today ?? "";
    expect(await due()).toContain(today);
    await rollUpUsage.run({ day: today }, context);
    expect(await due()).not.toContain(today);
    await sql`update usage_days set compared_at = compared_at - interval '10 minutes' where day = ${today}`;
    expect(await due()).toContain(today);
    expect(rollUpUsage.payload.safeParse({ day: "2026-02-30" }).success).toBe(false);
  });

  it("raises an alert for each account whose quota was changed manually, and ends it once that is undone", async () => {
    const [{ account, keys }, other] = [await makeAccount(), await makeAccount()];
    for (const one of [{ account, keys }, other]) {
      await consumeCalls(
        sql,
        [1, 2, 3].map(() => ({ keyId: one.keys[0] ?? 0n, endpoint: "games" })),
      );
    }
    const [quota] = await sql<{ day: string }[]>`
      select period as day
      from quotas
      where account_id = ${account}
        and length(period) = 10`;
    const day = quota?.day ?? "";
    const { context, lines } = testContext(sql);
    expect(await rollUpUsage.run({ day }, context)).toMatchObject({ differences: 0 });
    const setUsed = (used: number) => sql`
      update quotas
      set used = ${used}
      where account_id = ${account} and period = ${day}`;
    await setUsed(1);
    expect(await rollUpUsage.run({ day }, context)).toMatchObject({ differences: 1 });
    await rollUpUsage.run({ day: "2026-01-02" }, context); // another day does not affect this one
    expect(await rollUpUsage.run({ day }, context)).toMatchObject({ differences: 1 });
    const text = `account ${account} used 1 calls on ${day} by its quota, 3 by its counts and 3 by the facts of the meter`;
    expect(await openAlerts()).toEqual([{ subject: `${day} account ${account}`, text }]);
    expect(lines.filter(({ msg }) => msg === text)).toHaveLength(1);
    await setUsed(3);
    expect(await rollUpUsage.run({ day }, context)).toMatchObject({ differences: 0 });
    expect(await openAlerts()).toEqual([]);
    expect(lines.filter(({ msg }) => msg === `recovered: ${text}`)).toHaveLength(1);
  });

  it("checks a day in doubt until it is right again or its facts are dropped, however long ago it was", async () => {
    const day = "2026-02-27";
    const [{ account, keys }, other] = [await makeAccount(), await makeAccount()];
    const { context } = testContext(sql);
    const isLookedAt = async () => {
      await sql`update usage_days set compared_at = compared_at - interval '10 minutes'`;
      return ((await rollUpUsage.sweep?.(context)) ?? []).filter((one) => one.day === day).length === 1;
    };
    for (const one of [
      { account, key: keys[0] },
      { account: other.account, key: other.keys[0] },
    ]) {
      await addCalls(one, `${day}T12:00:00Z`, { endpoint: "games", n: 2 });
    }
    await sql`update quotas set used = 9 where period = ${day}`;
    expect(await rollUpUsage.run({ day }, context)).toMatchObject({ differences: 2 });
    expect(await isLookedAt()).toBe(true);
    await sql`update quotas set used = 2 where period = ${day} and account_id = ${account}`;
    await rollUpUsage.run({ day }, context);
    expect((await openAlerts()).map(({ subject }) => subject)).toEqual([`${day} account ${other.account}`]);
    await sql`drop table usage_facts_20260227`;
    expect(await isLookedAt()).toBe(true);
    expect(await rollUpUsage.run({ day }, context)).toMatchObject({ differences: 0 });
    expect(await openAlerts()).toEqual([]);
    expect(await isLookedAt()).toBe(false);
  });

  it("raises one as well if a quota or all facts are missing", async () => {
    const [account, other] = [await makeAccount(), await makeAccount()];
    await addCalls({ account: account.account, key: account.keys[0] }, "2026-01-25T12:00:00Z", {
      endpoint: "games",
      n: 4,
    });
    await addCalls({ account: other.account, key: other.keys[0] }, "2026-01-25T12:00:00Z", { endpoint: "games", n: 6 });
    await sql`delete from quotas where account_id = ${account.account}`;
    await sql`delete from usage_facts where account_id = ${other.account}`;
    const { context } = testContext(sql);
    expect(await rollUpUsage.run({ day: "2026-01-25" }, context)).toMatchObject({ differences: 2 });
    expect((await openAlerts()).map(({ text }) => text)).toEqual([
      `account ${account.account} used 0 calls on 2026-01-25 by its quota, 4 by its counts and 4 by the facts of the meter`,
      `account ${other.account} used 6 calls on 2026-01-25 by its quota, 6 by its counts and 0 by the facts of the meter`,
    ]);
  });
});
