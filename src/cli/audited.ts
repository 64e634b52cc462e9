import type { AuditEntry } from "../audit/entry.ts";
import { appendAudit } from "../audit/store.ts";
import type { Sql, Transaction } from "../db/client.ts";
import { operator } from "./operator.ts";

/** What a command did, as the audit log tells it. */
export type Told = Pick<AuditEntry, "action" | "target"> & Partial<Pick<AuditEntry, "before" | "after" | "reason">>;

/**
 * Does what a command is for and writes down that it was done, by the user of this machine: both or neither. `tell` gives
 * null where nothing was done.
 */
export async function audited<Result>(
  sql: Sql,
  work: (tx: Transaction) => Promise<Result>,
  tell: (result: Result) => Told | null,
): Promise<Result> {
  const { result } = await sql.begin(async (tx) => {
    const made = await work(tx);
    const told = tell(made);
    if (told !== null) await tellAudit(tx, told);
    return { result: made };
  });
  return result;
}

/** Writes down what is done in this transaction. */
export async function tellAudit(tx: Transaction, told: Told): Promise<void> {
  const { action, target, before = null, after = null, reason = null } = told;
  const by = { surface: "cli", actor: operator(), role: null, requestId: null, address: null } as const;
  await appendAudit(tx, { ...by, action, target, before, after, reason });
}
