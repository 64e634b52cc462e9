import { randomBytes } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import { closeRows } from "../../src/accounts/holders/close-store.ts";
import { createAccount, endGrant } from "../../src/callers/account-store.ts";
import { findCaller } from "../../src/callers/caller-store.ts";
import { checkKey, hashKey, mintKey } from "../../src/callers/key.ts";
import { lockAccount } from "../../src/callers/lock-store.ts";
import { createKey, listKeys, listWorkingKeys, revokeKey, touchKeys } from "../../src/callers/key-store.ts";
import { saveCallMinutes } from "../../src/usage/call-minute-store.ts";
import { openTestDatabase } from "../support/database.ts";
import { lockWaits } from "../support/lock-waits.ts";

const EMAIL = "ann@example.com";
const { sql } = await openTestDatabase({ max: 8 });

beforeEach(async () => {
  await sql.unsafe(`
    delete from keys;
    delete from entitlements;
    delete from accounts;
    alter table keys alter column id restart;
    alter table entitlements alter column id restart;
    alter table accounts alter column id restart`);
});

async function newKey(plan = "Pro", email = EMAIL): Promise<{ id: bigint; key: string; last4: string }> {
  await createAccount(sql, email);
  const made = await createKey(sql, { email, plan });
  if (!made.ok) throw new Error(made.problem);
  return { id: made.id, key: made.key, last4: made.key.slice(-4) };
}

const standingOf = async (key: string) => (await findCaller(sql, hashKey(key)))?.standing ?? null;

describe("an account", () => {
  it("is made once, and asking again is fine, in any case of its address", async () => {
    expect(await createAccount(sql, EMAIL)).toMatchObject({ ok: true, id: 1n, created: true });
    const again = await createAccount(sql, "Ann@Example.com");
    expect(again).toMatchObject({ ok: true, didNothing: true, id: 1n, created: false });
    expect(await sql`select email from accounts`).toHaveLength(1);
  });

  it("counts as verified, even if it was created elsewhere and was not", async () => {
    await sql`insert into accounts (email) values (${EMAIL})`;
    const made = await createAccount(sql, EMAIL);
    expect(made).toMatchObject({
      before: { verified: false },
      after: { verified: true },
      message: `the account ${EMAIL} is verified now`,
      created: false,
    });
    expect(made).not.toHaveProperty("didNothing");
    const [row] = await sql`select verified_at is not null as verified from accounts`;
    expect(row).toEqual({ verified: true });
  });

  it.each([
    "",
    "ann",
    "a@b@c",
    "a b@c",
    `${"a".repeat(250)}@example.com`,
    "mailto:ann@example.com",
    "<ann@example.com>",
    "ann@example.com,",
    "ann\u0001@example.com",
  ])("is not made for %j, which no mail could be sent to", async (email) => {
    expect(await createAccount(sql, email)).toMatchObject({
      ok: false,
      problem: expect.stringMatching(/^expected an e-mail address/),
    });
    await expect(sql`insert into accounts (email) values (${email})`).rejects.toThrow("email_looks_like_one");
  });
});

describe("making a key", () => {
  it("gives its text once, and nothing of it is stored but hash and last four", async () => {
    const { id, key, last4 } = await newKey();
    expect(checkKey(key)).toBe(true);
    const [row] = await sql<{ text: string }[]>`select keys::text as text from keys`;
    expect(row?.text).toContain(hashKey(key).toString("hex"));
    expect(row?.text).not.toContain(key.slice(8, 40));
    expect(await listKeys(sql)).toMatchObject([{ id, last4, account: EMAIL, state: "active", plan: "Pro" }]);
  });

  it("grants the plan without end to an account that has none", async () => {
    await newKey("starter");
    expect(await sql`select plan, ends_at from entitlements`).toEqual([{ plan: "Starter", ends_at: null }]);
    await newKey("Starter");
    expect(await sql`select from entitlements`).toHaveLength(1);
  });

  it("grants it again to an account whose plan has ended", async () => {
    await createAccount(sql, EMAIL);
    await sql`insert into entitlements (account_id, plan, starts_at, ends_at) values (1, 'Max', now() - interval '2 days', now() - interval '1 day')`;
    expect(await standingOf((await newKey("Pro")).key)).toBe("good");
  });

  it("grants it again to an account whose plan is ended while the command waits for the account", async () => {
    await newKey("Pro");
    const { making } = await sql.begin(async (tx) => {
      await lockAccount(tx, 1n);
      const waiting = createKey(sql, { email: EMAIL, plan: "Pro" });
      await lockWaits(sql, 1);
      await endGrant(tx, 1n);
      return { making: waiting };
    });
    const made = await making;
    expect(made.ok && (await standingOf(made.key))).toBe("good");
  });

  it("is refused for another plan than the account has", async () => {
    await newKey("Pro");
    const outcome = await createKey(sql, { email: EMAIL, plan: "Max" });
    expect(outcome).toEqual({ ok: false, problem: expect.stringContaining("has the plan Pro, not Max") });
    expect(await listKeys(sql)).toHaveLength(1);
  });

  it("is refused for an unknown plan, naming those there are", async () => {
    await createAccount(sql, EMAIL);
    const outcome = await createKey(sql, { email: EMAIL, plan: "Gold" });
    expect(outcome).toEqual({ ok: false, problem: 'there is no plan "Gold"; there are Starter, Pro, Max' });
  });

  it("is refused for an unknown account, saying how to make it", async () => {
    const outcome = await createKey(sql, { email: "bob@example.com", plan: "Pro" });
    expect(outcome).toEqual({
      ok: false,
      problem: expect.stringContaining("roundhouse account create bob@example.com"),
    });
  });

  it("stops at five active keys, however many requests are concurrent", async () => {
    await createAccount(sql, EMAIL);
    const asked = Array.from({ length: 8 }, () => createKey(sql, { email: EMAIL, plan: "Pro" }));
    const outcomes = await Promise.all(asked);
    expect(outcomes.filter(({ ok }) => ok)).toHaveLength(5);
    expect(outcomes.find(({ ok }) => !ok)).toEqual({ ok: false, problem: expect.stringContaining("5 active keys") });
  });

  it("counts neither revoked nor expired keys", async () => {
    const made = await Promise.all(Array.from({ length: 5 }, () => newKey()));
    await revokeKey(sql, String(made[0]?.id));
    await sql`update keys set expires_at = now() where id = ${made[1]?.id ?? null}`;
    await newKey();
    await newKey();
    expect(await createKey(sql, { email: EMAIL, plan: "Pro" })).toMatchObject({ ok: false });
  });

  it("that is refused grants nothing", async () => {
    await Promise.all(Array.from({ length: 5 }, () => newKey()));
    await sql`update entitlements set starts_at = now() - interval '2 days', ends_at = now() - interval '1 day'`;
    expect(await createKey(sql, { email: EMAIL, plan: "Max" })).toMatchObject({ ok: false });
    expect(await sql`select from entitlements`).toHaveLength(1);
  });
});

describe("revoking a key", () => {
  it.each([
    ["its id", ({ id }: { id: bigint }) => String(id)],
    ["its last four characters", ({ last4 }: { last4: string }) => last4],
    ["its text", ({ key }: { key: string }) => key],
  ])("takes %s, and twice is fine", async (_, which) => {
    const other = await newKey();
    const made = await newKey();
    const revoked = { ok: true, id: made.id, name: "default", last4: made.last4 };
    expect(await revokeKey(sql, which(made))).toMatchObject({ ...revoked, before: { state: "active" } });
    expect(await revokeKey(sql, which(made))).toMatchObject({ ...revoked, didNothing: true });
    expect(await standingOf(made.key)).toBe("revoked_api_key");
    expect(await standingOf(other.key)).toBe("good");
  });

  it("revokes none if several match", async () => {
    const [one, two] = [await newKey(), await newKey("Pro", "bob@example.com")];
    await sql`update keys set last4 = '0001'`;
    expect(await revokeKey(sql, "0001")).toEqual({
      ok: false,
      problem:
        "0001 fits 2 keys: 1 of ann@example.com (…0001), 2 of bob@example.com (…0001); give the id, as 01 for the first",
    });
    expect([await standingOf(one.key), await standingOf(two.key)]).toEqual(["good", "good"]);
    expect(await revokeKey(sql, "01")).toMatchObject({ ok: true, id: 1n });
  });

  it("takes a number as an id alone, even if it is the last four characters of another key", async () => {
    await sql`select setval(pg_get_serial_sequence('keys', 'id'), 4000)`;
    const [one, two] = [await newKey(), await newKey("Pro", "bob@example.com")];
    await sql`update keys set last4 = ${String(one.id)} where id = ${two.id}`;
    expect(await revokeKey(sql, String(one.id))).toMatchObject({ ok: false });
    expect(await revokeKey(sql, one.id)).toMatchObject({ ok: true, id: one.id });
    expect([await standingOf(one.key), await standingOf(two.key)]).toEqual(["revoked_api_key", "good"]);
  });

  it("reports if none matches, without repeating a key", async () => {
    const key = mintKey(randomBytes);
    expect(await revokeKey(sql, "nope")).toMatchObject({
      ok: false,
      problem: expect.stringMatching(/^there is no key "nope"/),
    });
    expect(await revokeKey(sql, key)).toMatchObject({ problem: expect.not.stringContaining(key) });
    const { id } = await newKey();
    const unknown = { ok: false, problem: "there is no such key of this account", isUnknown: true };
    expect(await revokeKey(sql, id, 2n)).toEqual(unknown);
  });
});

describe("finding the caller of a key", () => {
  it("gives the plan with its limits and houses", async () => {
    const { id, key, last4 } = await newKey("Max");
    expect(await findCaller(sql, hashKey(key))).toEqual({
      keyId: id,
      keyName: "default",
      last4,
      accountId: 1n,
      standing: "good",
      plan: {
        name: "Max",
        dayLimit: null,
        monthLimit: null,
        dayCeiling: 1_000_000n,
        burstPerSecond: 25,
        burst: 50,
        houses: null,
        used: { day: 0n, month: 0n, atMs: expect.any(Number) as number },
      },
      endsInMs: null,
    });
    await sql`update entitlements set ends_at = now() + interval '1 hour'`;
    await sql`update keys set expires_at = now() + interval '1 minute'`;
    const ending = await findCaller(sql, hashKey(key));
    expect(ending?.endsInMs).toBeGreaterThan(30_000);
    expect(ending?.endsInMs).toBeLessThanOrEqual(60_000);
  });

  it("gives null for a key that was never made", async () => {
    expect(await findCaller(sql, hashKey(mintKey(randomBytes)))).toBeNull();
  });

  it.each([
    ["revoked_api_key", "update keys set revoked_at = now(), expires_at = now()"],
    ["expired_api_key", "update keys set expires_at = now()"],
    ["good", "update keys set expires_at = now() + interval '1 hour'"],
    ["account_suspended", "update accounts set suspended_at = now(), suspend_reason = 'test', verified_at = null"],
    ["email_not_verified", "update accounts set verified_at = null"],
    ["plan_expired", "update entitlements set starts_at = now() - interval '1 day', ends_at = now()"],
    ["no_active_plan", "delete from entitlements"],
    ["no_active_plan", "update entitlements set starts_at = now() + interval '1 day'"],
  ])("shows %s after: %s", async (standing, change) => {
    const { key } = await newKey();
    await sql.unsafe(change);
    expect(await standingOf(key)).toBe(standing);
  });
});

describe("when a key was last used", () => {
  it("is kept to the minute, and never goes back", async () => {
    const [one, two, unused] = [await newKey(), await newKey(), await newKey()];
    await sql`update keys set last_used_at = now() + interval '1 hour' where id = ${two.id}`;
    await touchKeys(sql, [two.id, one.id]);
    const rows = await sql`
      select
        last_used_at = date_trunc('minute', last_used_at) as whole,
        last_used_at > now() as ahead
      from keys
      where id <> ${unused.id}
      order by id`;
    expect(rows).toMatchObject([{ whole: true, ahead: false }, { ahead: true }]);
    expect((await listKeys(sql)).at(-1)?.lastUsedAt).toBeNull();
  });

  it("is shown to staff as to the holder: as the counts of calls have it, until the minute is written", async () => {
    const { id } = await newKey();
    const lastAtMs = Date.now() - 1_000;
    const minuteMs = lastAtMs - (lastAtMs % 60_000);
    await saveCallMinutes(sql, [
      { accountId: 1n, keyId: id, endpoint: "games", outcome: "ok", minuteMs, n: 1, lastAtMs },
      {
        accountId: 1n,
        keyId: id,
        endpoint: "games",
        outcome: "expired_api_key",
        minuteMs,
        n: 1,
        lastAtMs: lastAtMs + 500,
      },
    ]);
    const shown = [...(await listKeys(sql)), ...(await listWorkingKeys(sql, 1n))].map(({ lastUsedAt }) =>
      Date.parse(lastUsedAt ?? ""),
    );
    expect(shown).toEqual([lastAtMs, lastAtMs]);
  });

  it("is noted while the account of the keys is closed, in one order of locks", async () => {
    const [one, two] = [await newKey(), await newKey()];
    // the first key behind the second, as an update of an older key leaves it
    await sql`
      with gone as (delete from keys where id = ${one.id} returning *)
      insert into keys overriding system value select * from gone`;
    const { both } = await sql.begin(async (tx) => {
      await tx`select from keys where id = ${one.id} for no key update`;
      const touched = touchKeys(sql, [one.id, two.id]);
      await lockWaits(sql, 1);
      const closed = sql.begin((other) => closeRows(other, 1n));
      await lockWaits(sql, 2);
      return { both: Promise.allSettled([touched, closed]) };
    });
    expect((await both).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
  });
});
