import type { Transaction } from "../db/client.ts";

/** The refusal of what only an open account gets. */
export const ACCOUNT_CLOSED = "this account was closed by its holder";

/**
 * Locks an account until the transaction ends: what counts its keys, plans or top-ups runs alone. Keys are locked after it.
 * Returns whether it is open: it exists, and its holder has not closed it.
 */
export async function lockAccount(tx: Transaction, id: bigint): Promise<boolean> {
  const [account] = await tx<{ isOpen: boolean }[]>`
    select closed_at is null as "isOpen"
    from accounts
    where id = ${id}
    for no key update`;
  return account?.isOpen === true;
}
