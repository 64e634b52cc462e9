import type { AuditEntry } from "../audit/entry.ts";
import { appendAudit } from "../audit/store.ts";
import type { Sql, Transaction } from "../db/client.ts";
import { operator } from "./operator.ts";

/** The audit entry of a command; the actor is added by {@link audited}. */
export type CommandAudit = Pick<AuditEntry, "action" | "target"> &
  Partial<Pick<AuditEntry, "before" | "after" | "reason">>;

/**
 * Runs a command's work and writes its audit entry in one transaction, as the user of this machine. `describe`
 * returns null when nothing was changed.
 */
export async function audited<Result>(
  sql: Sql,
  work: (tx: Transaction) => Promise<Result>,
  describe: (result: Result) => CommandAudit | null,
): Promise<Result> {
  const { result } = await sql.begin(async (tx) => {
    const made = await work(tx);
    const entry = describe(made);
    if (entry !== null) await appendCommandAudit(tx, entry);
    return { result: made };
  });
  return result;
}

/** Writes an audit entry in the caller's transaction. */
export async function appendCommandAudit(tx: Transaction, entry: CommandAudit): Promise<void> {
  const { action, target, before = null, after = null, reason = null } = entry;
  const by = { surface: "cli", actor: operator(), role: null, requestId: null, address: null } as const;
  await appendAudit(tx, { ...by, action, target, before, after, reason });
}
