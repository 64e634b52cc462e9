import type { Transaction } from "../db/client.ts";

/** What ended with an account. */
export interface Ended {
  keys: number;
  plans: number;
}

/**
 * Ends what an account has and forgets its address; its number and its ledger stay. Plans that would have begun later
 * never do, and nobody is told of their end, since there is nobody to tell.
 */
export async function closeRows(tx: Transaction, accountId: bigint): Promise<Ended> {
  const keys = await tx`
    update keys
    set revoked_at = now()
    where account_id = ${accountId} and (revoked_at is null or revoked_at > now())`;
  const plans = await tx`
    update entitlements
    set
      ends_at = greatest(clock_timestamp(), starts_at + interval '1 microsecond'),
      reminded_at = clock_timestamp(),
      end_told_at = clock_timestamp()
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

/** Whether this account is held by this person, locked until the transaction ends. */
export async function lockHeld(tx: Transaction, { accountId, userId }: { accountId: bigint; userId: string }) {
  const rows = await tx`
    select
    from accounts
    where id = ${accountId} and user_id = ${userId} and closed_at is null
    for no key update`;
  return rows.length > 0;
}
