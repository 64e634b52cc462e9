import type { AuditEntry } from "../../audit/entry.ts";

/** The holder who acts at the console, and the origin of the request. */
export interface HolderActor {
  accountId: bigint;
  requestId: string;
  address: string;
}

/**
 * The audit entry of a holder's action. It names the account by id only: the log is append-only, and e-mail addresses must
 * be erased when an account is closed.
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
