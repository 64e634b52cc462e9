import { randomBytes } from "node:crypto";
import { isEmailAddress } from "../config/mail.ts";
import type { Queryable, Sql, Transaction } from "../db/client.ts";
import { CALLERS_CHANNEL } from "./caller-store.ts";
import { currentPlan } from "./current-plan-store.ts";
import { checkKey, hashKey, mintKey } from "./key.ts";

/** One for each of several servers; quotas are per account, so more keys would not bring more calls. */
export const ACTIVE_KEYS = 5;
const MOST_DAYS = 3_660;
const MOST_NAME = 100;

/** The result of a command; `reason` includes what to do. */
export type Outcome<Done extends object = object> = ({ ok: true } & Done) | { ok: false; reason: string };

/**
 * Makes an account, or finds the one that is there: e-mail addresses differ by more than upper and lower case. It counts as
 * verified, since the operator who runs this command vouches for the address.
 */
export async function createAccount(sql: Sql, email: string): Promise<Outcome<{ id: bigint; created: boolean }>> {
  if (!isEmailAddress(email)) {
    return { ok: false, reason: `expected an e-mail address such as ann@example.com, got ${JSON.stringify(email)}` };
  }
  return sql.begin(async (transaction) => {
    const [made] = await transaction<{ id: bigint }[]>`
      insert into accounts (email, verified_at)
      values (${email}, now())
      on conflict (lower(email)) do nothing
      returning id`;
    if (made !== undefined) return { ok: true, id: made.id, created: true };
    const [found] = await transaction<{ id: bigint }[]>`
      update accounts
      set verified_at = coalesce(verified_at, now())
      where lower(email) = lower(${email})
      returning id`;
    if (found === undefined) throw new Error(`the account ${email} was there and is gone`);
    await announce(transaction);
    return { ok: true, id: found.id, created: false };
  });
}

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
): Promise<Outcome<NewKey>> {
  if (days !== null && !(Number.isInteger(days) && days >= 1 && days <= MOST_DAYS)) {
    return { ok: false, reason: `expected days from 1 to ${MOST_DAYS}, got ${days}` };
  }
  if (name.length > MOST_NAME) {
    return { ok: false, reason: `expected a name of at most ${MOST_NAME} characters, got ${name.length}` };
  }
  return sql.begin(async (transaction) => {
    // locks the account's row, so that two concurrent commands cannot both make the fifth key
    const [account] = await transaction<{ id: bigint }[]>`
      select id
      from accounts
      where lower(email) = lower(${email})
      for no key update`;
    if (account === undefined) {
      return { ok: false, reason: `there is no account ${email}; make it with \`roundhouse account create ${email}\`` };
    }
    const [{ active } = { active: 0 }] = await transaction<{ active: number }[]>`
      select count(*)::integer as active
      from keys
      where account_id = ${account.id}
        and revoked_at is null
        and replaced_by is null
        and (expires_at is null or expires_at > now())`;
    if (active >= ACTIVE_KEYS) {
      return { ok: false, reason: `${email} has ${active} active keys, the most there may be; revoke one first` };
    }
    const granted = await grantPlan(transaction, account.id, plan);
    if (!granted.ok) return granted;
    const made = await saveKey(transaction, { account: account.id, name, days });
    await announce(transaction);
    return { ok: true, ...made, plan: granted.plan };
  });
}

/** Mints a key and stores what may be stored of it. */
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
  return { id: made.id, key };
}

async function grantPlan(sql: Transaction, account: bigint, wanted: string): Promise<Outcome<{ plan: string }>> {
  const plans = await sql<{ name: string }[]>`
    select name
    from plans
    order by position`;
  const plan = plans.find(({ name }) => name.toLowerCase() === wanted.toLowerCase())?.name;
  if (plan === undefined) {
    const known = plans.map(({ name }) => name).join(", ");
    return { ok: false, reason: `there is no plan ${JSON.stringify(wanted)}; there are ${known}` };
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
    return { ok: false, reason: `the account has the plan ${held.plan}, not ${plan}; make the key for ${held.plan}` };
  }
  return { ok: true, plan };
}

/** A key as it may be shown; times as every surface prints them. */
export interface ListedKey {
  id: bigint;
  account: string;
  name: string;
  last4: string;
  /** `expiring`: it still works and has an end. */
  state: "active" | "expiring" | "expired" | "revoked";
  plan: string | null;
  created_at: string;
  last_used_at: string | null;
  expires_at: string | null;
  /** The id of the key that replaced it, if it was rotated. */
  replaced_by: bigint | null;
}

/** All keys, or those of one account, oldest first. */
export async function listKeys(sql: Queryable, email: string | null = null): Promise<ListedKey[]> {
  return sql<ListedKey[]>`
    select
      k.id,
      a.email as account,
      k.name,
      k.last4,
      case
        when k.revoked_at is not null then 'revoked'
        when k.expires_at <= now() then 'expired'
        when k.expires_at > now() then 'expiring'
        else 'active'
      end as state,
      current.plan,
      utc_text(k.created_at) as created_at,
      utc_text(k.last_used_at) as last_used_at,
      utc_text(k.expires_at) as expires_at,
      k.replaced_by
    from keys k
    join accounts a on a.id = k.account_id
    ${currentPlan(sql)}
    where ${email}::text is null
      or lower(a.email) = lower(${email})
    order by k.id`;
}

/**
 * Revokes a key immediately, in every process. `which` is the key itself, its id, or its last four characters; if those
 * match several keys, none is revoked (a number, or a text with a leading zero, can only be an id). Idempotent.
 */
export async function revokeKey(sql: Sql, which: string | bigint): Promise<Outcome<{ id: bigint; last4: string }>> {
  return sql.begin(async (transaction) => {
    const found = await findKey(transaction, which);
    if (!found.ok) return found;
    await transaction`
      update keys
      set revoked_at = coalesce(revoked_at, now())
      where id = ${found.id}`;
    await announce(transaction);
    return { ok: true, id: found.id, last4: found.last4 };
  });
}

/** Finds the one key that `which` means. */
export async function findKey(
  sql: Queryable,
  which: string | bigint,
): Promise<Outcome<{ id: bigint; last4: string; accountId: bigint }>> {
  const text = String(which);
  const isNumber = typeof which === "bigint";
  const found = await sql<{ id: bigint; last4: string; accountId: bigint; account: string }[]>`
    select k.id, k.last4, a.id as "accountId", a.email as account
    from keys k
    join accounts a on a.id = k.account_id
    where k.sha256 = ${checkKey(text) ? hashKey(text) : null}
      or k.id = ${isNumber || /^\d{1,18}$/.test(text) ? text : null}
      or k.last4 = ${isNumber ? null : text}
    order by k.id`;
  const [key, ...others] = found;
  if (key === undefined) {
    const shown = checkKey(text) ? "with this text" : JSON.stringify(text);
    return { ok: false, reason: `there is no key ${shown}; \`roundhouse key list\` shows the ids of all` };
  }
  if (others.length > 0) {
    const named = found.map(({ id, account, last4 }) => `${id} of ${account} (…${last4})`).join(", ");
    return {
      ok: false,
      reason: `${which} fits ${found.length} keys: ${named}; give the id, as 0${key.id} for the first`,
    };
  }
  return { ok: true, id: key.id, last4: key.last4, accountId: key.accountId };
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
