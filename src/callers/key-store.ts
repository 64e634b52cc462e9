import { randomBytes } from "node:crypto";
import type { Decided, Refusal } from "../audit/decision.ts";
import type { Queryable, Sql, Transaction } from "../db/client.ts";
import type { Fragment } from "../db/statement.ts";
import { CALLERS_CHANNEL } from "./caller-store.ts";
import { currentPlan } from "./current-plan-store.ts";
import { keyState, keyWorks, type KeyState, lastUse } from "./key-state-store.ts";
import { checkKey, hashKey, mintKey } from "./key.ts";
import { ACCOUNT_CLOSED, lockAccount } from "./lock-store.ts";

/** One for each of several servers; quotas are per account, so more keys would not bring more calls. */
export const ACTIVE_KEYS = 5;
/** New keys that an account may make in a day: more than anybody needs, and few enough to keep lists short. */
const KEYS_A_DAY = 50;
const MOST_DAYS = 3_660;
const MOST_NAME = 100;

/** The new key: this is the only time that its text is known. */
export interface NewKey {
  id: bigint;
  key: string;
  plan: string;
}

/**
 * Makes a key for an account, which works until it is revoked or for `days`. An account without a plan is given `plan`
 * without end; one that has another plan is refused, as is a sixth active key. Keys that were replaced do not count
 * while they run out. Plans are named in any case.
 */
export async function createKey(
  sql: Sql,
  { email, plan, name = "default", days = null }: { email: string; plan: string; name?: string; days?: number | null },
): Promise<Decided<NewKey>> {
  if (days !== null && !(Number.isInteger(days) && days >= 1 && days <= MOST_DAYS)) {
    return { ok: false, problem: `expected days from 1 to ${MOST_DAYS}, got ${days}` };
  }
  if (name.length > MOST_NAME) {
    return { ok: false, problem: `expected a name of at most ${MOST_NAME} characters, got ${name.length}` };
  }
  return sql.begin(async (transaction) => {
    // locks the account's row, so that two concurrent commands cannot both make the fifth key
    const [account] = await transaction<{ id: bigint }[]>`
      select id
      from accounts
      where lower(email) = lower(${email})
      for no key update`;
    if (account === undefined) {
      return {
        ok: false,
        problem: `there is no account ${email}; make it with \`roundhouse account create ${email}\``,
      };
    }
    const { length: active } = (await listWorkingKeys(transaction, account.id)).filter(isActive);
    if (active >= ACTIVE_KEYS) {
      return { ok: false, problem: `${email} has ${active} active keys, the most there may be; revoke one first` };
    }
    const granted = await grantPlan(transaction, account.id, plan);
    if (!granted.ok) return granted;
    const made = await saveKey(transaction, { account: account.id, name, days });
    const target = `key ${made.id} of account ${account.id}`;
    const message = `key ${made.id} of ${email}, plan ${granted.plan}: keep it well, it is not shown again`;
    return { ok: true, target, after: { name, plan: granted.plan, days }, message, ...made, plan: granted.plan };
  });
}

/**
 * Makes a key for an account, by its holder: at most {@link ACTIVE_KEYS} active ones, each under a name of its own, so
 * that a form that is sent twice makes one key.
 */
export async function createOwnKey(
  tx: Transaction,
  accountId: bigint,
  name: string,
): Promise<{ ok: true; id: bigint; key: string } | Refusal> {
  if (!(await lockAccount(tx, accountId))) return { ok: false, problem: ACCOUNT_CLOSED };
  const active = (await listWorkingKeys(tx, accountId)).filter(isActive);
  if (active.some((key) => key.name === name))
    return { ok: false, problem: `you have a key named ${JSON.stringify(name)} already; give this one another name` };
  if (active.length >= ACTIVE_KEYS) {
    return { ok: false, problem: `you have ${active.length} active keys, the most there may be; revoke one first` };
  }
  const problem = await tooManyToday(tx, accountId);
  if (problem !== null) return { ok: false, problem };
  return { ok: true, ...(await saveKey(tx, { account: accountId, name, days: null })) };
}

/** Why the holder of an account may make no more keys today; null if they may. */
export async function tooManyToday(sql: Queryable, accountId: bigint): Promise<string | null> {
  const [{ today } = { today: 0 }] = await sql<{ today: number }[]>`
    select count(*)::integer as today
    from keys
    where account_id = ${accountId}
      and created_at > now() - interval '1 day'`;
  if (today < KEYS_A_DAY) return null;
  return `${today} keys were made within a day, the most there may be; wait, or use those you have`;
}

/** Mints a key, stores what may be stored of it, and announces it. */
export async function saveKey(
  sql: Transaction,
  { account, name, days }: { account: bigint; name: string; days: number | null },
): Promise<{ id: bigint; key: string }> {
  const key = mintKey(randomBytes);
  const [made] = await sql<{ id: bigint }[]>`
    insert into keys (account_id, name, sha256, last4, expires_at)
    values (
      ${account}, ${name}, ${hashKey(key)}, ${key.slice(-4)}, now() + ${days}::integer * interval '1 day'
    )
    returning id`;
  if (made === undefined) throw new Error("expected the new key's id, got nothing");
  await announce(sql);
  return { id: made.id, key };
}

async function grantPlan(
  sql: Transaction,
  account: bigint,
  wanted: string,
): Promise<{ ok: true; plan: string } | Refusal> {
  const plans = await sql<{ name: string }[]>`
    select name
    from plans
    order by position`;
  const plan = plans.find(({ name }) => name.toLowerCase() === wanted.toLowerCase())?.name;
  if (plan === undefined) {
    const known = plans.map(({ name }) => name).join(", ");
    return { ok: false, problem: `there is no plan ${JSON.stringify(wanted)}; there are ${known}` };
  }
  const [held] = await sql<{ plan: string }[]>`
    select plan
    from entitlements
    where account_id = ${account}
      and (ends_at is null or ends_at > clock_timestamp()) -- now() is of before the lock
    order by starts_at -- what holds now, before what follows it
    limit 1`;
  if (held === undefined) {
    await sql`
      insert into entitlements (account_id, plan, starts_at)
      values (${account}, ${plan}, clock_timestamp())`;
  } else if (held.plan !== plan) {
    return { ok: false, problem: `the account has the plan ${held.plan}, not ${plan}; make the key for ${held.plan}` };
  }
  return { ok: true, plan };
}

/** A key as it may be shown; times as every surface prints them. */
export interface ListedKey {
  id: bigint;
  accountId: bigint;
  /** The address of its account. */
  account: string;
  name: string;
  last4: string;
  state: KeyState;
  /** The plan of its account. */
  plan: string | null;
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
  revokedAt: string | null;
  /** The key that replaced it, if it was rotated, and the last four characters of that one. */
  replacedBy: bigint | null;
  replacedByLast4: string | null;
}

function selectKeys(sql: Queryable, condition: Fragment) {
  return sql<ListedKey[]>`
    select
      k.id,
      k.account_id as "accountId",
      a.email as account,
      k.name,
      k.last4,
      ${keyState(sql)} as state,
      current.plan,
      utc_text(k.created_at) as "createdAt",
      utc_text(${lastUse(sql)}) as "lastUsedAt",
      utc_text(k.expires_at) as "expiresAt",
      utc_text(k.revoked_at) as "revokedAt",
      k.replaced_by as "replacedBy",
      r.last4 as "replacedByLast4"
    from keys k
    join accounts a on a.id = k.account_id
    left join keys r on r.id = k.replaced_by
    ${currentPlan(sql)}
    where ${condition}
    order by k.id`;
}

/** All keys, or those of one account, oldest first. */
export async function listKeys(sql: Queryable, email: string | null = null): Promise<ListedKey[]> {
  return selectKeys(sql, email === null ? sql`true` : sql`lower(a.email) = lower(${email})`);
}

/** The keys of an account that work, oldest first. */
export async function listWorkingKeys(sql: Queryable, accountId: bigint): Promise<ListedKey[]> {
  return selectKeys(sql, sql`k.account_id = ${accountId} and ${keyWorks(sql)}`);
}

/** Whether a working key counts as one of {@link ACTIVE_KEYS}: one that was replaced does not, while it runs out. */
export function isActive({ replacedBy }: ListedKey): boolean {
  return replacedBy === null;
}

/** The newest keys of an account that do not work any more, and how many there are. */
export async function listEndedKeys(
  sql: Queryable,
  accountId: bigint,
  limit: number,
): Promise<{ ended: ListedKey[]; endedInAll: number }> {
  const isEnded = sql`k.account_id = ${accountId} and not ${keyWorks(sql)}`;
  const newest = sql`k.id in (select k.id from keys k where ${isEnded} order by k.id desc limit ${limit})`;
  const [ended, [count]] = await Promise.all([
    selectKeys(sql, newest),
    sql<{ all: number }[]>`select count(*)::integer as all from keys k where ${isEnded}`,
  ]);
  return { ended: ended.toReversed(), endedInAll: count?.all ?? 0 };
}

/**
 * Revokes a key immediately, in every process. `which` names it as in {@link findKey}.
 * Idempotent.
 */
export async function revokeKey(
  sql: Sql,
  which: string | bigint,
  accountId: bigint | null = null,
): Promise<Decided<Pick<ListedKey, "id" | "name" | "last4">>> {
  return sql.begin(async (transaction) => {
    const found = await findKey(transaction, which, accountId);
    if (!found.ok) return found;
    const { id, name, last4, state } = found;
    const revoked = await transaction`
      update keys
      set revoked_at = now()
      where id = ${id}
        and revoked_at is null
      returning id`;
    const target = `key ${id} of account ${found.accountId}`;
    const key = `key ${id} (…${last4})`;
    if (revoked.length === 0)
      return { ok: true, didNothing: true, target, message: `${key} was revoked already`, id, name, last4 };
    await announce(transaction);
    const message = `${key} is revoked from the next call on`;
    return { ok: true, target, before: { state, last4 }, after: { state: "revoked", last4 }, message, id, name, last4 };
  });
}

/**
 * Finds the one key that `which` means: the key itself, its id, or its last four characters (a number, or a text with a
 * leading zero, can only be an id). With an account, only keys of that account are found.
 */
export async function findKey(
  sql: Queryable,
  which: string | bigint,
  accountId: bigint | null = null,
): Promise<({ ok: true } & ListedKey) | Refusal> {
  const text = String(which);
  const isNumber = typeof which === "bigint";
  const found = await selectKeys(
    sql,
    sql`(
      k.sha256 = ${checkKey(text) ? hashKey(text) : null}
      or k.id = ${isNumber || /^\d{1,18}$/.test(text) ? text : null}
      or k.last4 = ${isNumber ? null : text}
    ) ${accountId === null ? sql`` : sql`and k.account_id = ${accountId}`}`,
  );
  const [key, ...others] = found;
  if (key === undefined) {
    if (accountId !== null) return { ok: false, problem: "there is no such key of this account", isUnknown: true };
    const shown = checkKey(text) ? "with this text" : JSON.stringify(text);
    return { ok: false, problem: `there is no key ${shown}; \`roundhouse key list\` shows the ids of all` };
  }
  if (others.length > 0) {
    const named = found.map(({ id, account, last4 }) => `${id} of ${account} (…${last4})`).join(", ");
    return {
      ok: false,
      problem: `${which} fits ${found.length} keys: ${named}; give the id, as 0${key.id} for the first`,
    };
  }
  return { ok: true, ...key };
}

/** Remembers that keys were used, to the minute and only forward; meant to be called once a minute, not per call. */
export async function touchKeys(sql: Queryable, ids: readonly bigint[]): Promise<void> {
  await sql`
    update keys
    set last_used_at = date_trunc('minute', now(), 'UTC')
    where id in (
      select id
      from keys
      where id = any(${ids.map(String)}::bigint[])
        and (last_used_at is null or last_used_at < date_trunc('minute', now(), 'UTC'))
      order by id
      for no key update
    )`;
}

/** Makes every API process ask again for what it knows of callers, so that a change holds from the next call on. */
export async function announce(sql: Transaction): Promise<void> {
  await sql`select pg_notify(${CALLERS_CHANNEL}, '')`;
}
