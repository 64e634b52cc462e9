import type { Refusal } from "../audit/decision.ts";
import { appendAudit } from "../audit/store.ts";
import type { Transaction } from "../db/client.ts";
import { PageError } from "../frame/errors.ts";
import { type AuditedAction, auditEntry } from "./audit-entry.ts";
import { type Done, type OpsAction, opsAction, type OpsParts, type Sent } from "./contract.ts";
import { tellReaders } from "./payloads/listing.ts";

type Changed = Omit<Extract<Done, { ok: true }>, "location" | "didNothing"> & { location?: string };

/** What an action changed, for the audit log and for the person: or that there was nothing to change, or the problem. */
export type Change =
  | (Changed & { didNothing: true })
  | (Changed & Partial<AuditedAction> & Pick<AuditedAction, "target"> & { didNothing?: true })
  | Refusal;

type Declared<Form, Made> = Omit<OpsAction<Form>, "form" | "run"> & {
  form?: OpsAction<Form>["form"];
  /** Whether the API processes are notified, since what they publish changes. */
  isPublished?: true;
  /** Slow work, such as hashing a password, that runs before the transaction so that it holds no connection. */
  prepare?: () => Promise<Made>;
  /** The page that follows, if the change does not name it. */
  location?: (sent: Sent<Form>) => string;
  /** Makes the change. What it throws undoes it. */
  change: (tx: Transaction, sent: Sent<Form>, parts: OpsParts, made: Made) => Promise<Change>;
};

/**
 * An action whose change and audit entry are in one transaction. The entry has the action's name and the reason of the
 * form, unless the change states others. The page of an unknown subject is 404.
 */
export function auditedAction<Form, Made = undefined>(declared: Declared<Form, Made>): OpsAction {
  const { change, isPublished, prepare, location = () => "/ops", ...action } = declared;
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
      if (!done.ok && done.isUnknown === true) throw new PageError(404, done.problem);
      if (!done.ok) return done;
      if (isPublished === true) await tellReaders(parts);
      return { location: location(sent), ...done };
    },
  });
}

function entryOf(action: string, form: unknown, changed: Change): AuditedAction | null {
  if (!changed.ok) {
    if (changed.refused === undefined) return null;
    return { action: `${action}.refused`, target: changed.refused, reason: changed.problem };
  }
  return changed.didNothing === true ? null : { action, reason: reasonOf(form), ...changed };
}

function reasonOf(form: unknown): string | null {
  if (typeof form !== "object" || form === null || !("reason" in form)) return null;
  return typeof form.reason === "string" ? form.reason : null;
}
