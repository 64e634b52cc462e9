import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import remindHolders from "../../jobs/remind-holders.ts";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { pruneStatement } from "../../src/housekeeping/prune-store.ts";
import { consumeCalls } from "../../src/usage/store.ts";
import { mailsTo } from "../console/mails.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";

const { sql } = await openTestDatabase();
beforeAll(async () => {
  await sql`update plans set day_limit = 10, month_limit = 1000 where name = 'Starter'`;
  await sql`update plans set day_limit = 100, month_limit = 20 where name = 'Pro'`;
  await sql`
    insert into plans (name, position, day_limit, burst_per_second, burst, price_micros, days)
    values ('Roomy', 9, 20, 1, 1, 0, 7)`;
});

async function makeCaller(plan: string) {
  const email = `${randomUUID()}@example.com`;
  const account = await createAccount(sql, email);
  const made = await createKey(sql, { email, plan });
  if (!account.ok || !made.ok) throw new Error("expected an account with a key");
  return {
    accountId: account.id,
    call: (times: number) =>
      consumeCalls(
        sql,
        Array.from({ length: times }, () => ({ keyId: made.id, endpoint: "games" })),
      ),
    subjects: async () => (await mailsTo(sql, email)).map(({ subject }) => subject),
    mails: () => mailsTo(sql, email),
  };
}

/** What a worker does when its sweep finds something. */
async function sweep(): Promise<void> {
  const { context } = testContext(sql, { env: { PUBLIC_URL: "https://example.com/" } });
  const found = (await remindHolders.sweep?.(context)) ?? [];
  if (found.length > 0) await remindHolders.run({}, context);
  expect(await remindHolders.sweep?.(context)).toEqual([]);
}

describe("mails about used calls", () => {
  it("are written at 80 % and at 100 % of a day, once each, with the counts, the reset and the setting to disable them", async () => {
    const { accountId, call, subjects, mails } = await makeCaller("Starter");
    await sql`update entitlements set ends_at = now() + interval '9 days' where account_id = ${accountId}`;
    await call(7);
    await sweep();
    expect(await subjects()).toEqual([]);
    await call(1);
    await sweep();
    await sweep();
    expect(await subjects()).toEqual(["You have used 80 % of today's calls"]);
    await call(5);
    await sweep();
    await sweep();
    expect(await subjects()).toEqual(["You have used 80 % of today's calls", "You have used all of today's calls"]);
    const [near, full] = (await mails()).map(({ body }) => body);
    expect(near).toContain("8 of 10 calls");
    expect(near).toContain("day_quota_exceeded (429)");
    expect(full).toContain("10 of 10 calls");
    expect(full).toContain("00:00 UTC");
    expect(full).toContain("https://example.com/console/plans");
    expect(full).toContain("https://example.com/console/account");
  });

  it("advise a larger plan only if the holder can change to one that is on sale", async () => {
    const advised = async (caller: Awaited<ReturnType<typeof makeCaller>>) => {
      await caller.call(10);
      await sweep();
      return (await caller.mails())[0]?.body.includes("A larger plan takes effect immediately");
    };
    const withEnd = async () => {
      const caller = await makeCaller("Starter");
      await sql`update entitlements set ends_at = now() + interval '9 days' where account_id = ${caller.accountId}`;
      return caller;
    };
    const endless = await makeCaller("Starter");
    expect(await advised(endless)).toBe(false);
    expect((await endless.mails())[0]?.body).toContain("Ask the operator of this service");
    expect(await advised(await withEnd())).toBe(true);
    const followed = await withEnd();
    await sql`
      insert into entitlements (account_id, plan, starts_at)
      select account_id, 'Roomy', ends_at + interval '1 day' from entitlements where account_id = ${followed.accountId}`;
    expect(await advised(followed)).toBe(false);
    await sql`update plans set on_sale = false where name <> 'Starter'`;
    expect(await advised(await withEnd())).toBe(false);
    await sql`update plans set on_sale = true`;
  });

  it("leave out 80 % for an account that is at 100 % already, and distinguish the month from the day", async () => {
    const { call, subjects } = await makeCaller("Pro");
    await call(20);
    await sweep();
    expect(await subjects()).toEqual(["You have used all of this month's calls"]);
  });

  it("are written again for the larger plan that the first ones led to", async () => {
    const { accountId, call, subjects, mails } = await makeCaller("Starter");
    await call(10);
    await sweep();
    await sql`
      update entitlements
      set ends_at = clock_timestamp()
      where account_id = ${accountId}`;
    await sql`
      insert into entitlements (account_id, plan, starts_at)
      select account_id, 'Roomy', ends_at
      from entitlements
      where account_id = ${accountId}`;
    await sweep();
    expect(await subjects()).toEqual(["You have used all of today's calls"]);
    await call(10);
    await sweep();
    await sweep();
    expect(await subjects()).toEqual(["You have used all of today's calls", "You have used all of today's calls"]);
    expect((await mails()).at(-1)?.body).toContain("20 of 20 calls");
  });

  it("are kept until the month is over that they are about, so that none is repeated", async () => {
    const { call } = await makeCaller("Pro");
    await call(20);
    await sweep();
    await sql`
      update mails
      set created_at = now() - interval '31 days', sent_at = now() - interval '31 days', body = null`;
    expect((await pruneStatement(sql, "mails")).count).toBe(0);
  });

  it("are not written for a plan without limits, a suspended account, or a holder who turned them off", async () => {
    const [max, off, suspended] = [await makeCaller("Max"), await makeCaller("Starter"), await makeCaller("Starter")];
    await sql`update accounts set quota_mails = false where id = ${off.accountId}`;
    for (const { call } of [max, off, suspended]) await call(10);
    await sql`update accounts set suspended_at = now(), suspend_reason = 'test' where id = ${suspended.accountId}`;
    await sweep();
    for (const { subjects } of [max, off, suspended]) expect(await subjects()).toEqual([]);
  });
});
