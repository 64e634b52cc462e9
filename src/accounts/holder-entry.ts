import type { AuditEntry } from "../audit/entry.ts";

/** Who did something about an account at the console, and from where. */
export interface HolderActor {
  accountId: bigint;
  requestId: string;
  address: string;
}

/**
 * The entry of the audit log for what the holder of an account did. It names them by the account's number alone: the log
 * cannot forget, and an address has to be forgotten once the account is closed.
 */
export function holderEntry(
  { accountId, requestId, address }: HolderActor,
  { action, target, before = null, after = null }: Pick<AuditEntry, "action"> & Partial<AuditEntry>,
): AuditEntry {
  const account = `account ${accountId}`;
  return {
    surface: "console",
    actor: account,
    role: null,
    action,
    target: target ?? account,
    before,
    after,
    reason: null,
    requestId,
    address,
  };
}
