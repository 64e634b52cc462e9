import { beforeEach, expect, it } from "vitest";
import { findCaller } from "../../src/callers/caller-store.ts";
import { hashKey } from "../../src/callers/key.ts";
import { rotateKey } from "../../src/callers/rotation-store.ts";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey, listKeys, revokeKey } from "../../src/callers/key-store.ts";
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
  await createAccount(sql, EMAIL);
});

async function newKey(name = "default", days: number | null = null): Promise<{ id: bigint; key: string }> {
  const made = await createKey(sql, { email: EMAIL, plan: "Pro", name, days });
  if (!made.ok) throw new Error(made.problem);
  return made;
}

async function rotated(which: string, overlap: Parameters<typeof rotateKey>[2] = "24h") {
  const made = await rotateKey(sql, which, overlap);
  if (!made.ok) throw new Error(made.problem);
  return made;
}

const standingOf = async (key: string) => (await findCaller(sql, hashKey(key)))?.standing;
const statesOf = async () => (await listKeys(sql, EMAIL)).map(({ state }) => state);

it.each([
  ["1h", 1],
  ["24h", 24],
  ["7d", 168],
] as const)(
  "a key that is rotated with an overlap of %s works for %i hours beside the new one",
  async (overlap, hours) => {
    const old = await newKey("server");
    const made = await rotated(old.key, overlap);
    expect(made).toMatchObject({
      account: EMAIL,
      name: "server 2",
      replaced: { id: old.id, last4: old.key.slice(-4) },
    });
    expect([await standingOf(old.key), await standingOf(made.key)]).toEqual(["good", "good"]);
    expect(await listKeys(sql)).toMatchObject([
      { id: old.id, state: "expiring", replacedBy: made.id },
      { id: made.id, state: "active", name: "server 2", expiresAt: null, replacedBy: null },
    ]);
    const [row] = await sql<{ hours: number }[]>`
    select extract(epoch from expires_at - now())::float8 / 3600 as hours from keys where id = ${old.id}`;
    expect(row?.hours).toBeGreaterThan(hours - 0.1);
    expect(row?.hours).toBeLessThanOrEqual(hours);
  },
);

it("without an overlap the old key ends immediately", async () => {
  const old = await newKey();
  const made = await rotated(String(old.id), "0");
  expect([await standingOf(old.key), await standingOf(made.key)]).toEqual(["expired_api_key", "good"]);
  expect(await statesOf()).toEqual(["expired", "active"]);
});

it("an end earlier than the overlap stays, and the new key has the end of the old one", async () => {
  const short = await newKey("short", 1);
  const [before] = await listKeys(sql);
  expect((await rotated(short.key, "7d")).replaced.expires_at).toBe(before?.expiresAt);
  const long = await newKey("long", 30);
  const { id } = await rotated(long.key, "0");
  const keys = await listKeys(sql);
  expect(keys.find(({ name, replacedBy }) => name === "short 2" && replacedBy === null)?.expiresAt).toBe(
    before?.expiresAt,
  );
  const [given] = await sql<{ days: number }[]>`
    select round(extract(epoch from expires_at - created_at) / 86400)::integer as days
    from keys
    where id = ${id}`;
  expect(given?.days).toBe(30);
});

it("a key made for some days is expiring, then expired", async () => {
  const { id, key } = await newKey("trial", 30);
  expect([await statesOf(), await standingOf(key)]).toEqual([["expiring"], "good"]);
  await sql`update keys set expires_at = now() where id = ${id}`;
  expect([await statesOf(), await standingOf(key)]).toEqual([["expired"], "expired_api_key"]);
});

it("works with five keys, and leaves five", async () => {
  const made = await Promise.all(Array.from({ length: 5 }, () => newKey()));
  await Promise.all(made.map(({ key }) => rotated(key)));
  expect((await statesOf()).toSorted()).toEqual([...Array(5).fill("active"), ...Array(5).fill("expiring")]);
  expect(await createKey(sql, { email: EMAIL, plan: "Pro" })).toMatchObject({ ok: false });
});

it("stops at five replaced keys that still work, however many requests are concurrent", async () => {
  const made = await Promise.all(Array.from({ length: 5 }, () => newKey()));
  const next = await Promise.all(made.slice(0, 3).map(({ key }) => rotated(key)));
  const outcomes = await Promise.all([...made.slice(3), ...next].map(({ key }) => rotateKey(sql, key, "24h")));
  expect(outcomes.filter(({ ok }) => ok)).toHaveLength(2);
  expect(outcomes.find(({ ok }) => !ok)).toEqual({
    ok: false,
    problem: `5 replaced keys of ${EMAIL} still work, the most there may be; revoke one first`,
  });
});

it("of one key by two concurrent requests makes one new key", async () => {
  const { key, id } = await newKey();
  const outcomes = await Promise.all([rotateKey(sql, key, "24h"), rotateKey(sql, key, "24h")]);
  expect(outcomes.filter(({ ok }) => ok)).toHaveLength(1);
  expect(outcomes.find(({ ok }) => !ok)).toEqual({
    ok: false,
    problem: expect.stringMatching(new RegExp(`^key ${id} was replaced by key \\d+; rotate that one$`)),
  });
});

it.each([
  ["revoked", (id: bigint) => revokeKey(sql, String(id))],
  ["expired", (id: bigint) => sql`update keys set expires_at = now() where id = ${id}`],
] as const)("a key that is %s is not rotated", async (state, end) => {
  const { id } = await newKey();
  await end(id);
  expect(await rotateKey(sql, String(id), "1h")).toEqual({
    ok: false,
    problem: `key ${id} is ${state}, so there is nothing to replace; make a new one with \`roundhouse key create\``,
  });
});

it("an unknown key is not rotated, and invalid days are refused", async () => {
  expect(await rotateKey(sql, "nope", "1h")).toMatchObject({ ok: false, problem: expect.stringContaining("no key") });
  expect(await createKey(sql, { email: EMAIL, plan: "Pro", days: 0 })).toEqual({
    ok: false,
    problem: "expected days from 1 to 3660, got 0",
  });
});

it("locks the account before the key, as closing an account does, so that neither waits for the other", async () => {
  const old = await newKey();
  const { done } = await sql.begin(async (tx) => {
    await tx`select from accounts for no key update`;
    const rotating = rotateKey(sql, old.key, "24h");
    await lockWaits(sql, 1);
    await tx`select from keys for no key update nowait`;
    return { done: rotating };
  });
  expect(await done).toMatchObject({ ok: true });
});
