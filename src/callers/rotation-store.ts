import type { Sql, Transaction } from "../db/client.ts";
import { successorName } from "./successor-name.ts";
import { lockAccount } from "./lock-store.ts";
import { announce, findKey, saveKey, type Outcome } from "./store.ts";

/** How many hours a key continues next to the one that replaces it: long enough to give the new key to servers. */
export const OVERLAPS = { "0": 0, "1h": 1, "24h": 24, "7d": 168 } as const;

/** The name of an overlap. */
export type Overlap = keyof typeof OVERLAPS;

/** Replaced keys of one account that may still run out at a time. */
const RUNNING_OUT = 5;

/** What a rotation made; the key's text is known this once. */
export interface Rotated {
  id: bigint;
  key: string;
  account: string;
  name: string;
  replaced: { id: bigint; last4: string; expires_at: string };
}

/**
 * Makes the key that replaces another, of the same account under its own name, and gives the old one an end: now with the overlap
 * "0", else after the overlap, or at the end it had if that comes sooner. The new key has the end that the old one had.
 * `which` names the old key as revoking does. One that no longer works or was replaced before is refused, since its
 * holder would end up with another number of keys than he thinks.
 */
export async function rotateKey(sql: Sql, which: string | bigint, overlap: Overlap): Promise<Outcome<Rotated>> {
  return sql.begin(async (transaction) => {
    const found = await findKey(transaction, which);
    if (!found.ok) return found;
    const { id } = found;
    await lockAccount(transaction, found.accountId);
    await transaction`
      select
      from keys
      where id = ${id}
      for no key update`;
    const old = await findRotated(transaction, id);
    if (old === undefined) throw new Error(`the key ${id} was there and is gone`);
    const problem = problemOf(id, old);
    if (problem !== null) return { ok: false, reason: problem };
    const name = successorName(old.name, old.taken);
    const made = await saveKey(transaction, { account: old.account, name, days: null });
    await transaction`
      update keys
      set expires_at = (select expires_at from keys where id = ${id})
      where id = ${made.id}`;
    const [ended] = await transaction<{ last4: string; expiresAt: string }[]>`
      update keys
      set
        expires_at = least(expires_at, now() + ${OVERLAPS[overlap]}::integer * interval '1 hour'),
        replaced_by = ${made.id}
      where id = ${id}
      returning last4, utc_text(expires_at) as "expiresAt"`;
    if (ended === undefined) throw new Error(`the key ${id} was there and is gone`);
    await announce(transaction);
    const replaced = { id, last4: ended.last4, expires_at: ended.expiresAt };
    return { ok: true, ...made, account: old.email, name, replaced };
  });
}

/** A key to be replaced, and the keys of its account. */
interface OldKey {
  account: bigint;
  email: string;
  name: string;
  revoked: boolean;
  expired: boolean;
  replacedBy: bigint | null;
  runningOut: number;
  taken: string[];
}

async function findRotated(tx: Transaction, id: bigint): Promise<OldKey | undefined> {
  const [old] = await tx<OldKey[]>`
    select
      k.account_id as account,
      a.email,
      k.name,
      k.revoked_at is not null as revoked,
      coalesce(k.expires_at <= now(), false) as expired,
      k.replaced_by as "replacedBy",
      (
        select count(*)::integer
        from keys o
        where o.account_id = a.id
          and o.replaced_by is not null
          and o.revoked_at is null
          and o.expires_at > now()
      ) as "runningOut",
      array(
        select o.name
        from keys o
        where o.account_id = a.id
          and o.revoked_at is null
          and (o.expires_at is null or o.expires_at > now())
      ) as taken
    from keys k
    join accounts a on a.id = k.account_id
    where k.id = ${id}`;
  return old;
}

function problemOf(
  id: bigint,
  old: { email: string; revoked: boolean; expired: boolean; replacedBy: bigint | null; runningOut: number },
): string | null {
  if (old.replacedBy !== null) return `key ${id} was replaced by key ${old.replacedBy}; rotate that one`;
  if (old.revoked || old.expired) {
    const state = old.revoked ? "revoked" : "expired";
    return `key ${id} is ${state}, so there is nothing to replace; make a new one with \`roundhouse key create\``;
  }
  if (old.runningOut >= RUNNING_OUT) {
    return `${old.runningOut} replaced keys of ${old.email} still work, the most there may be; revoke one first`;
  }
  return null;
}
