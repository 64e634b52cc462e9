import { listOperatorChanges, whyNoApproval } from "../../accounts/operators/operator-change-store.ts";
import type { Decided } from "../../audit/decision.ts";
import type { Transaction } from "../../db/client.ts";
import { usd } from "../../money.ts";
import { post } from "../../ledger/store.ts";
import { amountText, rateText, toMicros } from "./statements/amount.ts";
import { endDecision, saveApproval } from "./decision-store.ts";
import { approvalOf, type Person, workOn } from "./four-eyes.ts";
import { lineName, type BankLine } from "./line.ts";
import { lockLine, type Posted, saveLineState } from "./line-store.ts";
import { type BankReturn, findOpenReturn, saveReturn } from "./return-store.ts";

/**
 * Moves a line to suspense: the account is unknown, or the money must not be credited yet. From now on its value is
 * fixed at this rate, and the person who set it does not approve its credit. The rate of USD is always 1.
 */
export async function holdLine(
  tx: Transaction,
  by: Person,
  { lineId, rateE8, reason }: { lineId: bigint; rateE8: bigint; reason: string },
): Promise<Decided> {
  const line = await lockLine(tx, lineId);
  if (line === null) return { ok: false, problem: `there is no bank line ${lineId}` };
  if (line.state !== "new")
    return { ok: false, problem: `${lineName(line)} is ${line.state}; only a new line goes to suspense` };
  const micros = toMicros({ minor: line.amountMinor, currency: line.currency, rateE8 });
  if (micros === 0n)
    return { ok: false, problem: `${amountText(line.amountMinor, line.currency)} is worth nothing at this rate` };
  const suspense = await postToSuspense(tx, line, { rateE8, micros, by: by.id });
  if (!suspense.ok) return suspense;
  await saveLineState(tx, line.id, { state: "suspense", reason, ...suspense.posted });
  return {
    ok: true,
    target: lineName(line),
    message: `${lineName(line)} is in suspense: ${usd(micros)} USD`,
    before: { state: line.state },
    after: { state: "suspense", rate: rateText(rateE8), usd: usd(micros) },
  };
}

/** Posts a line to suspense if it is not there already. Returns in `posted` what its row has to store. */
export async function postToSuspense(
  tx: Transaction,
  line: BankLine,
  { rateE8, micros, by }: Omit<Posted, "transactionId">,
): Promise<{ ok: true; posted: { suspense?: Posted } } | { ok: false; problem: string }> {
  if (line.suspenseTransactionId !== null) return { ok: true, posted: {} };
  const posted = await post(tx, {
    kind: "suspense",
    key: `bank-suspense:${line.bank}:${line.bankRef}`,
    legs: [
      { side: { kind: "cash_bank" }, micros: -micros },
      { side: { kind: "suspense" }, micros },
    ],
    meta: { line: String(line.id), amount: amountText(line.amountMinor, line.currency), rate: rateText(rateE8) },
  });
  if (!posted.ok) return { ok: false, problem: posted.message };
  return { ok: true, posted: { suspense: { transactionId: posted.transactionId, micros, rateE8, by } } };
}

/** Requests confirmation that a line's money was sent back to its sender. Another person has to confirm it. */
export async function requestReturn(
  tx: Transaction,
  by: Person,
  { lineId, reason }: { lineId: bigint; reason: string },
): Promise<Decided> {
  const line = await lockLine(tx, lineId);
  if (line === null) return { ok: false, problem: `there is no bank line ${lineId}` };
  if (line.state !== "suspense" && line.state !== "rejected") {
    return {
      ok: false,
      problem: `${lineName(line)} is ${line.state}; only what is in suspense or rejected goes back to its bank`,
    };
  }
  const open = await findOpenReturn(tx, line.id);
  if (open !== null)
    return { ok: false, problem: `${open.askedBy} requested this already: it needs the approval of another person` };
  const id = await saveReturn(tx, { lineId, reason, by: by.id });
  return {
    ok: true,
    target: lineName(line),
    message: `${lineName(line)} is marked as returned; another person has to confirm it`,
    before: { state: line.state },
    after: { state: line.state, return: id },
  };
}

/** Confirms a return: the money leaves suspense for its sender. It was never in a wallet. */
export async function approveReturn(
  tx: Transaction,
  by: Person,
  { lineId, returnId, isOnePerson }: { lineId: bigint; returnId: bigint; isOnePerson: boolean },
): Promise<Decided> {
  const found = await openReturnOf(tx, lineId, returnId);
  if (!found.ok) return found;
  const { line, asked } = found;
  const authors = { ...asked, heldById: null, decidedById: asked.askedById };
  const approval = approvalOf(by, authors, { isOnePerson });
  if (!approval.ok) return approval;
  const refusal = isOnePerson ? null : await whyNoApproval(tx, by.id, workOn(line, authors));
  if (refusal !== null) return { ok: false, problem: refusal, refused: lineName(line) };
  const { suspenseMicros: micros, suspenseTransactionId } = line;
  if (micros === null || suspenseTransactionId === null)
    throw new Error(`${lineName(line)} is ${line.state} and was never posted`);
  const posted = await post(tx, {
    // neither a correction, since the first posting was right, nor a caller's money: suspense releases what it held
    kind: "suspense",
    key: `bank-return:${line.bank}:${line.bankRef}`,
    legs: [
      { side: { kind: "suspense" }, micros: -micros },
      { side: { kind: "cash_bank" }, micros },
    ],
    meta: { line: String(line.id), posted: String(suspenseTransactionId), way: "returned to the sender" },
  });
  if (!posted.ok) return { ok: false, problem: posted.message };
  await saveApproval(tx, "bank_returns", asked.id, { by: by.id, onePerson: approval.onePerson });
  await saveLineState(tx, line.id, { state: "returned", returnedBy: posted.transactionId });
  return {
    ok: true,
    target: lineName(line),
    message: `${lineName(line)} is returned: ${usd(micros)} USD left suspense`,
    before: { state: line.state, return: asked.id },
    after: {
      state: "returned",
      usd: usd(micros),
      transaction: posted.transactionId,
      one_person: approval.onePerson,
      approver: await listOperatorChanges(tx, by.id),
    },
  };
}

/** Cancels a return: the money was not sent and stays where it was. */
export async function stopReturn(
  tx: Transaction,
  by: Person,
  { lineId, returnId, reason }: { lineId: bigint; returnId: bigint; reason: string },
): Promise<Decided> {
  const found = await openReturnOf(tx, lineId, returnId);
  if (!found.ok) return found;
  await endDecision(tx, "bank_returns", found.asked.id, { by: by.id, why: reason });
  return {
    ok: true,
    target: lineName(found.line),
    message: `${lineName(found.line)} stays where it is`,
    before: { state: found.line.state, return: found.asked.id },
    after: { state: found.line.state },
  };
}

async function openReturnOf(
  tx: Transaction,
  lineId: bigint,
  returnId: bigint,
): Promise<{ ok: true; line: BankLine; asked: BankReturn } | { ok: false; problem: string }> {
  const line = await lockLine(tx, lineId);
  if (line === null) return { ok: false, problem: `there is no bank line ${lineId}` };
  const asked = await findOpenReturn(tx, lineId);
  if (asked?.id === returnId) return { ok: true, line, asked };
  return { ok: false, problem: `${lineName(line)} is ${line.state} now; look at it again` };
}
