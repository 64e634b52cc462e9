import type { AuditEntry } from "../audit/entry.ts";
import type { Visitor } from "./contract.ts";

/** What an action adds to its audit entry; the rest is known from the actor. */
export type AuditedAction = Pick<AuditEntry, "action" | "target"> &
  Partial<Pick<AuditEntry, "before" | "after" | "reason">>;

/** Returns the audit entry for an action of a visitor of `/ops`. */
export function auditEntry(
  { email, role, requestId, address }: Visitor,
  { action, target, before = null, after = null, reason = null }: AuditedAction,
): AuditEntry {
  return { surface: "ops", actor: email, role, action, target, before, after, reason, requestId, address };
}
