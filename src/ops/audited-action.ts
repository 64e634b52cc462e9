import { appendAudit } from "../audit/store.ts";
import type { Transaction } from "../db/client.ts";
import { type AuditedAction, auditEntry } from "./audit-entry.ts";
import { type Done, type OpsAction, opsAction, type OpsParts, type Sent } from "./contract.ts";
import { tellReaders } from "./payloads/listing.ts";

/** What an action changed, for the audit log and for the person: or that there was nothing to change, or the problem. */
export type Change =
  | (Extract<Done, { ok: true; didNothing?: true }> & { didNothing: true })
  | (Extract<Done, { ok: true }> & Partial<AuditedAction> & Pick<AuditedAction, "target">)
  | (Extract<Done, { ok: false }> & {
      /** The target of an entry that records the refusal; none is written if it is not given. */
      refused?: string;
    });

type Declared<Form, Made> = Omit<OpsAction<Form>, "form" | "run"> & {
  form?: OpsAction<Form>["form"];
  /** Whether the API processes are notified, since what they publish changes. */
  isPublished?: true;
  /** Slow work, such as hashing a password, that runs before the transaction so that it holds no connection. */
  prepare?: () => Promise<Made>;
  /** Makes the change. What it throws undoes it. */
  change: (tx: Transaction, sent: Sent<Form>, parts: OpsParts, made: Made) => Promise<Change>;
};

/**
 * An action whose change and audit entry are in one transaction. The entry has the action's name and the reason of the
 * form, unless the change states others.
 */
export function auditedAction<Form, Made = undefined>(declared: Declared<Form, Made>): OpsAction {
  const { change, isPublished, prepare, ...action } = declared;
  return opsAction<Form>({
    ...action,
    async run(parts, sent) {
      const made = (await prepare?.()) as Made;
      const done = await parts.sql.begin(async (tx) => {
        const changed = await change(tx, sent, parts, made);
        const entry = entryOf(action.name, sent.form, changed);
        if (entry !== null) await appendAudit(tx, auditEntry(sent.visitor, entry));
        return changed;
      });
      if (done.ok && isPublished === true) await tellReaders(parts);
      return done;
    },
  });
}

function entryOf(action: string, form: unknown, changed: Change): AuditedAction | null {
  if (!changed.ok) {
    if (changed.refused === undefined) return null;
    return { action: `${action}.refused`, target: changed.refused, reason: changed.problem };
  }
  return "target" in changed ? { action, reason: reasonOf(form), ...changed } : null;
}

function reasonOf(form: unknown): string | null {
  if (typeof form !== "object" || form === null || !("reason" in form)) return null;
  return typeof form.reason === "string" ? form.reason : null;
}
