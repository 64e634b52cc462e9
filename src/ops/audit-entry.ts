import type { AuditEntry } from "../audit/entry.ts";
import type { Visitor } from "./contract.ts";

/** What an action says of itself for the audit log; the rest is known of whoever acts. */
export type Told = Pick<AuditEntry, "action" | "target"> & Partial<Pick<AuditEntry, "before" | "after" | "reason">>;

/** The entry of the audit log for what a visitor of `/ops` does. */
export function auditEntry(
  { email, role, requestId, address }: Visitor,
  { action, target, before = null, after = null, reason = null }: Told,
): AuditEntry {
  return { surface: "ops", actor: email, role, action, target, before, after, reason, requestId, address };
}
