import { checkKey, hashKey } from "./key.ts";
import type { Queryable, Transaction } from "../db/client.ts";
import { nested } from "../db/nested.ts";
import { type Overlap, rotateKey } from "./rotation-store.ts";
import { ACCOUNT_CLOSED, lockAccount } from "./lock-store.ts";
import { ACTIVE_KEYS, announce, type Outcome, saveKey } from "./store.ts";

/** New keys that an account may make in a day: more than anybody needs, and few enough to keep lists short. */
const KEYS_A_DAY = 50;

/** A key as its holder sees it; times as every surface prints them. */
export interface OwnKey {
  id: bigint;
  name: string;
  last4: string;
  /** `expiring`: it still works and has an end. */
  state: "active" | "expiring" | "expired" | "revoked";
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
  revokedAt: string | null;
  /** The last four characters of the key that replaced it, if it was rotated. */
  replacedBy: string | null;
}

/** The keys of an account: those that work, oldest first, and of those that ended the `ended` newest. */
export async function listOwnKeys(
  sql: Queryable,
  accountId: bigint,
  ended: number,
): Promise<{ working: OwnKey[]; ended: OwnKey[]; endedInAll: number }> {
  const rows = await sql<(OwnKey & { isWorking: boolean; endedInAll: number })[]>`
    with own as (
      select
        k.*,
        k.revoked_at is null and (k.expires_at is null or k.expires_at > now()) as is_working
      from keys k
      where k.account_id = ${accountId}
    ),
    placed as (
      select
        *,
        row_number() over (partition by is_working order by id desc) as place,
        count(*) filter (where not is_working) over ()::integer as ended_in_all
      from own
    )
    select
      p.id,
      p.name,
      p.last4,
      case
        when p.revoked_at is not null then 'revoked'
        when not p.is_working then 'expired'
        when p.expires_at is not null then 'expiring'
        else 'active'
      end as state,
      utc_text(p.created_at) as "createdAt",
      utc_text(greatest(p.last_used_at, recent.last_at)) as "lastUsedAt",
      utc_text(p.expires_at) as "expiresAt",
      utc_text(p.revoked_at) as "revokedAt",
      r.last4 as "replacedBy",
      p.is_working as "isWorking",
      p.ended_in_all as "endedInAll"
    from placed p
    left join keys r on r.id = p.replaced_by
    left join (
      -- last_used_at is written once a minute, these about once a second
      select key_id, max(last_at) as last_at
      from call_minutes
      where account_id = ${accountId}
        and minute > now() - interval '5 minutes'
        and outcome not in ('revoked_api_key', 'expired_api_key')
      group by key_id
    ) recent on recent.key_id = p.id
    where p.is_working
      or p.place <= ${ended}
    order by p.id`;
  const own = (isWorking: boolean) =>
    rows.flatMap((row) => {
      const { isWorking: works, endedInAll: _, ...key } = row;
      return works === isWorking ? [key] : [];
    });
  return { working: own(true), ended: own(false).toReversed(), endedInAll: rows[0]?.endedInAll ?? 0 };
}

/**
 * Makes a key for an account, by its holder: at most five that were not replaced work at a time, each under a name of its
 * own, so that a form that is sent twice makes one key.
 */
export async function createOwnKey(
  tx: Transaction,
  accountId: bigint,
  name: string,
): Promise<Outcome<{ id: bigint; key: string }>> {
  if (!(await lockAccount(tx, accountId))) return { ok: false, reason: ACCOUNT_CLOSED };
  const [count] = await tx<{ active: number; named: boolean; today: number }[]>`
    select
      count(*) filter (where works)::integer as active,
      coalesce(bool_or(works and name = ${name}), false) as named,
      count(*) filter (where created_at > now() - interval '1 day')::integer as today
    from (
      select
        name,
        created_at,
        revoked_at is null and replaced_by is null and (expires_at is null or expires_at > now()) as works
      from keys
      where account_id = ${accountId}
    ) own`;
  if (count === undefined) throw new Error("expected the number of keys, got nothing");
  if (count.named)
    return { ok: false, reason: `you have a key named ${JSON.stringify(name)} already; give this one another name` };
  if (count.active >= ACTIVE_KEYS) {
    return { ok: false, reason: `you have ${count.active} active keys, the most there may be; revoke one first` };
  }
  if (count.today >= KEYS_A_DAY) return { ok: false, reason: tooManyToday(count.today) };
  const made = await saveKey(tx, { account: accountId, name, days: null });
  await announce(tx);
  return { ok: true, ...made };
}

/** What rotating a key of one's own made; the key's text is known this once. */
export interface OwnRotated {
  id: bigint;
  key: string;
  name: string;
  replaced: { id: bigint; name: string; last4: string; endsAt: string };
}

/** Replaces a key of an account by a new one; the old one continues for the overlap. Null where the account has no such key. */
export async function rotateOwnKey(
  tx: Transaction,
  accountId: bigint,
  id: bigint,
  overlap: Overlap,
): Promise<Outcome<OwnRotated> | null> {
  await lockAccount(tx, accountId);
  const found = await findOwnKey(tx, accountId, { id });
  if (found === null) return null;
  if (found.state === "revoked" || found.state === "expired") {
    return {
      ok: false,
      reason: `the key …${found.last4} is ${found.state}, so there is nothing to replace; create a new one`,
    };
  }
  if (found.replacedBy !== null) {
    return {
      ok: false,
      reason: `the key …${found.last4} was replaced by …${found.replacedBy} already; rotate that one`,
    };
  }
  const [count] = await tx<{ today: number }[]>`
    select count(*)::integer as today
    from keys
    where account_id = ${accountId}
      and created_at > now() - interval '1 day'`;
  if (count !== undefined && count.today >= KEYS_A_DAY) return { ok: false, reason: tooManyToday(count.today) };
  const done = await rotateKey(nested(tx), id, overlap);
  if (!done.ok) return done;
  const { expires_at: endsAt, ...replaced } = done.replaced;
  return { ok: true, id: done.id, key: done.key, name: done.name, replaced: { ...replaced, name: found.name, endsAt } };
}

/**
 * Revokes a key of an account immediately, in every process. Null if the account has no such key. Idempotent.
 */
export async function revokeOwnKey(
  tx: Transaction,
  accountId: bigint,
  id: bigint,
): Promise<{ name: string; last4: string; wasRevoked: boolean } | null> {
  const [found] = await tx<{ name: string; last4: string; wasRevoked: boolean }[]>`
    select name, last4, revoked_at is not null as "wasRevoked"
    from keys
    where id = ${id}
      and account_id = ${accountId}
    for no key update`;
  if (found === undefined) return null;
  if (found.wasRevoked) return found;
  await tx`
    update keys
    set revoked_at = now()
    where id = ${id}
      and account_id = ${accountId}`;
  await announce(tx);
  return found;
}

/** A key of an account, by its id or its whole text; null if the account has none such. */
export async function findOwnKey(
  sql: Queryable,
  accountId: bigint,
  by: { id: bigint } | { key: string },
): Promise<Pick<OwnKey, "id" | "name" | "last4" | "state" | "replacedBy"> | null> {
  if ("key" in by && !checkKey(by.key)) return null;
  const [found] = await sql<Pick<OwnKey, "id" | "name" | "last4" | "state" | "replacedBy">[]>`
    select
      k.id,
      k.name,
      k.last4,
      case
        when k.revoked_at is not null then 'revoked'
        when k.expires_at <= now() then 'expired'
        when k.expires_at > now() then 'expiring'
        else 'active'
      end as state,
      r.last4 as "replacedBy"
    from keys k
    left join keys r on r.id = k.replaced_by
    where k.account_id = ${accountId}
      and ${"id" in by ? sql`k.id = ${by.id}` : sql`k.sha256 = ${hashKey(by.key)}`}`;
  return found ?? null;
}

function tooManyToday(count: number): string {
  return `${count} keys were made within a day, the most there may be; wait, or use those you have`;
}
