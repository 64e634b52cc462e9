import type { Decided, Refusal } from "../audit/decision.ts";
import type { Sql, Transaction } from "../db/client.ts";
import { nested } from "../db/nested.ts";
import { successorName } from "./successor-name.ts";
import { lockAccount } from "./lock-store.ts";
import { findKey, isActive, type ListedKey, listWorkingKeys, saveKey, tooManyToday } from "./key-store.ts";

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
export async function rotateKey(sql: Sql, which: string | bigint, overlap: Overlap): Promise<Decided<Rotated>> {
  return sql.begin(async (transaction) => {
    const found = await findKey(transaction, which);
    if (!found.ok) return found;
    const { id, accountId, account } = found;
    await lockAccount(transaction, accountId);
    await transaction`
      select
      from keys
      where id = ${id}
      for no key update`;
    const old = await findKey(transaction, id); // again: the last holder of the locks may have changed it
    if (!old.ok) return old;
    const working = await listWorkingKeys(transaction, accountId);
    const problem = problemOf(old, working.filter((key) => !isActive(key)).length);
    if (problem !== null) return { ok: false, problem };
    const name = successorName(
      old.name,
      working.map((key) => key.name),
    );
    const made = await saveKey(transaction, { account: accountId, name, days: null });
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
    const replaced = { id, last4: ended.last4, expires_at: ended.expiresAt };
    const target = `key ${id} of account ${accountId}`;
    const after = { replaced_by: made.id, expires_at: ended.expiresAt };
    const message = `key ${made.id} of ${account} replaces key ${id} (…${ended.last4}): it is not shown again`;
    return { ok: true, target, after, message, ...made, account, name, replaced };
  });
}

function problemOf({ id, account, state, replacedBy }: ListedKey, runningOut: number): string | null {
  if (replacedBy !== null) return `key ${id} was replaced by key ${replacedBy}; rotate that one`;
  if (state === "revoked" || state === "expired") {
    return `key ${id} is ${state}, so there is nothing to replace; make a new one with \`roundhouse key create\``;
  }
  if (runningOut >= RUNNING_OUT) {
    return `${runningOut} replaced keys of ${account} still work, the most there may be; revoke one first`;
  }
  return null;
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
): Promise<({ ok: true } & OwnRotated) | Refusal | null> {
  await lockAccount(tx, accountId);
  const found = await findKey(tx, id, accountId);
  if (!found.ok) return null;
  if (found.state === "revoked" || found.state === "expired") {
    return {
      ok: false,
      problem: `the key …${found.last4} is ${found.state}, so there is nothing to replace; create a new one`,
    };
  }
  if (found.replacedBy !== null) {
    return {
      ok: false,
      problem: `the key …${found.last4} was replaced by …${found.replacedByLast4} already; rotate that one`,
    };
  }
  const problem = await tooManyToday(tx, accountId);
  if (problem !== null) return { ok: false, problem };
  const done = await rotateKey(nested(tx), id, overlap);
  if (!done.ok) return done;
  const { expires_at: endsAt, ...replaced } = done.replaced;
  return { ok: true, id: done.id, key: done.key, name: done.name, replaced: { ...replaced, name: found.name, endsAt } };
}
