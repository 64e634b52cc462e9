import { z } from "zod";
import { listOperatorChanges } from "../../accounts/operators/operator-change-store.ts";
import type { Transaction } from "../../db/client.ts";
import { PageError } from "../../frame/errors.ts";
import { decideReversal, proposeReversal } from "../../ledger/reversal-store.ts";
import { personOf } from "../acting-person.ts";
import { auditedAction, type Change } from "../audited-action.ts";
import type { Sent } from "../contract.ts";
import { idOf } from "../../frame/path-id.ts";
import { reason } from "../payloads/listing.ts";

const form = z.object({ reason });

/** Proposes the reversal of a transaction. Nothing moves until another person approves it. */
export const proposeReversalAction = auditedAction({
  name: "reversal.propose",
  title: "Propose reversal",
  path: "/ledger/transactions/:id/reversal",
  roles: ["operator"],
  isDangerous: true,
  form,
  async change(tx, { visitor, params, form: given }) {
    const transactionId = idOf(params["id"]);
    if (transactionId === null) throw new PageError(404, "there is no such transaction");
    const done = await proposeReversal(tx, { transactionId, reason: given.reason, by: visitor.operatorId });
    if (!done.ok) return { ok: false, problem: done.reason };
    return {
      ok: true,
      target: `transaction ${transactionId}`,
      after: { proposal: done.proposalId, state: "proposed" },
      message: "Reversal proposed; nothing moves until another person approves it",
      location: `/ops/ledger/transactions/${transactionId}`,
    };
  },
});

/** Approves the reversal of a transaction and posts it. */
export const approveReversalAction = auditedAction({
  name: "reversal.approve",
  title: "Approve reversal",
  path: "/ledger/proposals/:id/approve",
  roles: ["operator"],
  isDangerous: true,
  needsTwoFactor: true,
  form,
  change: (tx, sent) => decide(tx, sent, true),
});

/** Declines a proposal; nothing moves. */
export const declineReversalAction = auditedAction({
  name: "reversal.decline",
  path: "/ledger/proposals/:id/decline",
  roles: ["operator"],
  isDangerous: false,
  form,
  change: (tx, sent) => decide(tx, sent, false),
});

async function decide(
  tx: Transaction,
  { visitor, params, form: given }: Sent<z.infer<typeof form>>,
  isApproved: boolean,
): Promise<Change> {
  const proposalId = idOf(params["id"]);
  if (proposalId === null) throw new PageError(404, "there is no such proposal");
  const { id: by, hasTwoFactor } = await personOf(tx, visitor);
  const decided = await decideReversal(tx, { proposalId, isApproved, by, hasTwoFactor, why: given.reason });
  if (!decided.ok) {
    const { reason: problem, refused } = decided;
    return { ok: false, problem, ...(refused !== undefined && { refused: `transaction ${refused}` }) };
  }
  const { transactionId, reversalId } = decided;
  return {
    ok: true,
    target: `transaction ${transactionId}`,
    before: { proposal: proposalId, state: "proposed" },
    after: {
      proposal: proposalId,
      state: isApproved ? "approved" : "declined",
      reversal: reversalId,
      approver: await listOperatorChanges(tx, visitor.operatorId),
    },
    message: isApproved
      ? `transaction ${transactionId} is reversed by transaction ${reversalId}`
      : `transaction ${transactionId} is not reversed`,
    location: `/ops/ledger/transactions/${transactionId}`,
  };
}
