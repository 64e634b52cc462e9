import { appendAudit } from "../../audit/store.ts";
import type { Transaction } from "../../db/client.ts";
import { PageError } from "../../frame/errors.ts";
import type { Person } from "../../topups/bank/four-eyes.ts";
import type { Decision } from "../../topups/bank/hold.ts";
import { lineName } from "../../topups/bank/line.ts";
import { personOf } from "../acting-person.ts";
import { auditEntry } from "../audit-entry.ts";
import type { Done, OpsParts, Sent } from "../contract.ts";
import { idOf } from "../payloads/listing.ts";

/** The roles that may act on bank transfers, in addition to admins. */
export const roles = ["operator"] as const;

/** Applies a decision on a line together with its audit entry, and leads back to the line. */
export async function decide<Form>(
  { sql }: OpsParts,
  { visitor, params, form }: Sent<Form>,
  act: {
    name: string;
    reason?: string;
    work(tx: Transaction, by: Person, lineId: bigint, form: Form): Promise<Decision>;
  },
): Promise<Done> {
  const id = idOf(params["id"]);
  if (id === null) throw new PageError(404, "there is no such bank line");
  const outcome = await sql.begin(async (tx) => {
    const done = await act.work(tx, await personOf(tx, visitor), id, form);
    if (!done.ok) {
      if (done.refused !== undefined) {
        const target = lineName(done.refused);
        await appendAudit(tx, auditEntry(visitor, { action: `${act.name}.refused`, target, reason: done.problem }));
      }
      return done;
    }
    const { before, after } = done;
    const entry = { action: act.name, target: lineName(done.line), before, after, reason: act.reason ?? null };
    await appendAudit(tx, auditEntry(visitor, entry));
    return done;
  });
  if (!outcome.ok) return outcome;
  return { ok: true, message: outcome.message, location: `/ops/bank/lines/${id}` };
}
