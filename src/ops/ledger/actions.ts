import { z } from "zod";
import { listOperatorChanges } from "../../accounts/operators/operator-change-store.ts";
import { appendAudit } from "../../audit/store.ts";
import { PageError } from "../../frame/errors.ts";
import { decideReversal, proposeReversal } from "../../ledger/reversal-store.ts";
import { personOf } from "../acting-person.ts";
import { auditEntry } from "../audit-entry.ts";
import { type Done, opsAction, type OpsParts, type Sent } from "../contract.ts";
import { idOf, reason } from "../payloads/listing.ts";

const form = z.object({ reason });
type Form = z.infer<typeof form>;

/** Proposes the reversal of a transaction. Nothing moves until another person approves it. */
export const proposeReversalAction = opsAction({
  name: "reversal.propose",
  title: "Propose reversal",
  path: "/ledger/transactions/:id/reversal",
  roles: ["operator"],
  isDangerous: true,
  form,
  async run({ sql }, { visitor, params, form: given }) {
    const transactionId = idOf(params["id"]);
    if (transactionId === null) throw new PageError(404, "there is no such transaction");
    const outcome = await sql.begin(async (tx) => {
      const asked = { transactionId, reason: given.reason, by: visitor.operatorId };
      const proposed = await proposeReversal(tx, asked);
      if (!proposed.ok) return proposed;
      const target = `transaction ${transactionId}`;
      const after = { proposal: proposed.proposalId, state: "proposed" };
      await appendAudit(tx, auditEntry(visitor, { action: "reversal.propose", target, after, reason: given.reason }));
      return proposed;
    });
    if (!outcome.ok) return { ok: false, problem: outcome.reason };
    const message = "Reversal proposed; nothing moves until another person approves it";
    return { ok: true, message, location: `/ops/ledger/transactions/${transactionId}` };
  },
});

/** Approves the reversal of a transaction and posts it. */
export const approveReversalAction = opsAction({
  name: "reversal.approve",
  title: "Approve reversal",
  path: "/ledger/proposals/:id/approve",
  roles: ["operator"],
  isDangerous: true,
  needsTwoFactor: true,
  form,
  run: (parts, sent) => decide(parts, sent, true),
});

/** Declines a proposal; nothing moves. */
export const declineReversalAction = opsAction({
  name: "reversal.decline",
  path: "/ledger/proposals/:id/decline",
  roles: ["operator"],
  isDangerous: false,
  form,
  run: (parts, sent) => decide(parts, sent, false),
});

async function decide(
  { sql }: OpsParts,
  { visitor, params, form: given }: Sent<Form>,
  isApproved: boolean,
): Promise<Done> {
  const proposalId = idOf(params["id"]);
  if (proposalId === null) throw new PageError(404, "there is no such proposal");
  const outcome = await sql.begin(async (tx) => {
    const { id: by, hasTwoFactor } = await personOf(tx, visitor);
    const decided = await decideReversal(tx, { proposalId, isApproved, by, hasTwoFactor, why: given.reason });
    if (!decided.ok) {
      if (decided.refused !== undefined) {
        const target = `transaction ${decided.refused}`;
        await appendAudit(
          tx,
          auditEntry(visitor, { action: "reversal.approve.refused", target, reason: decided.reason }),
        );
      }
      return decided;
    }
    const entry = {
      action: isApproved ? "reversal.approve" : "reversal.decline",
      target: `transaction ${decided.transactionId}`,
      before: { proposal: proposalId, state: "proposed" },
      after: {
        proposal: proposalId,
        state: isApproved ? "approved" : "declined",
        reversal: decided.reversalId,
        approver: await listOperatorChanges(tx, visitor.operatorId),
      },
      reason: given.reason,
    };
    await appendAudit(tx, auditEntry(visitor, entry));
    return decided;
  });
  if (!outcome.ok) return { ok: false, problem: outcome.reason };
  const { transactionId, reversalId } = outcome;
  const message = isApproved
    ? `transaction ${transactionId} is reversed by transaction ${reversalId}`
    : `transaction ${transactionId} is not reversed`;
  return { ok: true, message, location: `/ops/ledger/transactions/${transactionId}` };
}
