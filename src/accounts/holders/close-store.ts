import type { Transaction } from "../../db/client.ts";

/** Numbers of revoked keys and ended plans. */
export interface Ended {
  keys: number;
  plans: number;
}

/**
 * Revokes the keys of an account, ends its plans and erases its address; its id and ledger stay. No mail reports the end of
 * a plan, since the address is erased.
 */
export async function closeRows(tx: Transaction, accountId: bigint): Promise<Ended> {
  const keys = await tx`
    update keys
    set revoked_at = now()
    where id in (
      select id
      from keys
      where account_id = ${accountId} and (revoked_at is null or revoked_at > now())
      order by id -- as touchKeys locks them
      for no key update
    )`;
  const plans = await tx`
    update entitlements
    set
      ends_at = least(ends_at, greatest(clock_timestamp(), starts_at + interval '1 microsecond')),
      reminded_at = clock_timestamp(),
      end_notified_at = clock_timestamp()
    where account_id = ${accountId} and (ends_at is null or ends_at > now())`;
  await tx`
    update accounts
    set
      email = 'closed-' || id || '@accounts.invalid',
      user_id = null,
      closed_at = clock_timestamp()
    where id = ${accountId}`;
  return { keys: keys.count, plans: plans.count };
}

/** Whether the person holds the open account. Locks its row until the transaction ends. */
export async function lockHeld(tx: Transaction, { accountId, userId }: { accountId: bigint; userId: string }) {
  const rows = await tx`
    select
    from accounts
    where id = ${accountId} and user_id = ${userId} and closed_at is null
    for no key update`;
  return rows.length > 0;
}
