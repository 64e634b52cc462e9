import { listOperatorChanges, whyNoApproval } from "../../accounts/operators/operator-change-store.ts";
import { lockAccount } from "../../callers/lock-store.ts";
import type { Decided } from "../../audit/decision.ts";
import type { Transaction } from "../../db/client.ts";
import { thousands, usd } from "../../money.ts";
import { queueMail } from "../../mail/outbox-store.ts";
import { rejectedLetter } from "../letters.ts";
import { creditTopup, lockTopup, saveTopupState } from "../topup-store.ts";
import { amountText, rateText, toMicros } from "./statements/amount.ts";
import { endDecision, saveApproval } from "./decision-store.ts";
import { makeTransfer } from "./expected-store.ts";
import { approvalOf, type Person, workOn } from "./four-eyes.ts";
import { postToSuspense } from "./hold.ts";
import { lineName, type BankLine } from "./line.ts";
import { lockLine, saveLineState } from "./line-store.ts";
import { type BankMatch, findOpenMatch, listMatches, saveMatch } from "./match-store.ts";
import { findOpenReturn } from "./return-store.ts";
import { findTarget, type Target } from "./target-store.ts";

/** A request to match a line with an account. */
export interface MatchRequest {
  lineId: bigint;
  /** A reference, or an account's id or e-mail address. */
  to: string;
  /** The account that was on the screen; a match with any other is refused. */
  accountId: bigint;
  /** USD for one unit of the line's currency, in 1e-8. A line that went to suspense keeps its value from then. */
  rateE8: bigint;
  note: string;
}

/** Matches a line with an account. Nothing is credited: another person has to approve it. */
export async function matchLine(tx: Transaction, by: Person, asked: MatchRequest): Promise<Decided> {
  const line = await lockLine(tx, asked.lineId);
  if (line === null) return { ok: false, problem: `there is no bank line ${asked.lineId}` };
  if (line.state !== "new" && line.state !== "suspense") return { ok: false, problem: await whyNot(tx, line) };
  if ((await findOpenReturn(tx, line.id)) !== null) {
    return { ok: false, problem: `${lineName(line)} has a pending return to its bank; stop that first` };
  }
  const found = await findTarget(tx, asked.to);
  if (!found.ok) return found;
  const { target } = found;
  if (target.accountId !== asked.accountId) {
    const problem = `${asked.to} is of account ${target.accountId}, not of ${asked.accountId} that was on the screen; check it again`;
    return { ok: false, problem };
  }
  if (target.isClosed) {
    return { ok: false, problem: `account ${target.accountId} was closed by its holder: put the line into suspense` };
  }
  const rateE8 = line.rateE8 ?? asked.rateE8;
  const micros = line.suspenseMicros ?? toMicros({ minor: line.amountMinor, currency: line.currency, rateE8 });
  if (micros === 0n)
    return { ok: false, problem: `${amountText(line.amountMinor, line.currency)} is worth nothing at this rate` };
  const { topupId, reference, topupState } = await takeTopup(tx, line, target);
  const match = { lineId: line.id, topupId, accountId: target.accountId, rateE8, micros, note: asked.note, topupState };
  const id = await saveMatch(tx, { ...match, by: by.id });
  await saveLineState(tx, line.id, { state: "matched" });
  return {
    ok: true,
    target: lineName(line),
    message: `${lineName(line)} is matched with ${reference} of ${target.email}: ${thousands(usd(micros))} USD await approval`,
    before: { state: line.state },
    after: {
      state: "matched",
      match: id,
      topup: topupId,
      reference,
      account: target.accountId,
      rate: rateText(rateE8),
      usd: usd(micros),
    },
  };
}

/**
 * Approves a match that another person made. In one transaction it posts the money, changes top-up and line, and writes
 * the e-mail. Of several concurrent approvals exactly one succeeds.
 */
export async function approveMatch(
  tx: Transaction,
  by: Person,
  { lineId, matchId, isOnePerson }: { lineId: bigint; matchId: bigint; isOnePerson: boolean },
): Promise<Decided> {
  const open = await openMatchOf(tx, lineId, matchId);
  if (!open.ok) return open;
  const { line, match } = open;
  const authors = { ...match, decidedById: match.matchedById };
  const approval = approvalOf(by, authors, { isOnePerson });
  if (!approval.ok) return approval;
  const refusal = isOnePerson ? null : await whyNoApproval(tx, by.id, workOn(line, authors));
  if (refusal !== null) return { ok: false, problem: refusal, refused: lineName(line) };
  await lockTopup(tx, match.topupId); // before the account, as others lock them
  if (!(await lockAccount(tx, match.accountId))) {
    const problem = `account ${match.accountId} was closed meanwhile: take the match back and put the line into suspense`;
    return { ok: false, problem };
  }
  const posted = await creditTopup(tx, {
    topupId: match.topupId,
    micros: match.micros,
    key: `bank:${line.bank}:${line.bankRef}`,
    cash: line.suspenseTransactionId === null ? "cash_bank" : "suspense",
    meta: { line: String(line.id), amount: amountText(line.amountMinor, line.currency), rate: rateText(match.rateE8) },
  });
  if (!posted.ok) return { ok: false, problem: posted.message };
  await saveApproval(tx, "bank_matches", match.id, { by: by.id, onePerson: approval.onePerson });
  await saveLineState(tx, line.id, { state: "credited", creditedBy: posted.transactionId });
  return {
    ok: true,
    target: lineName(line),
    message: `${usd(match.micros)} USD are in the wallet of ${match.email}`,
    before: { state: "matched", match: match.id },
    after: {
      state: "credited",
      match: match.id,
      topup: match.topupId,
      reference: match.reference,
      account: match.accountId,
      usd: usd(match.micros),
      transaction: posted.transactionId,
      one_person: approval.onePerson,
      approver: await listOperatorChanges(tx, by.id),
    },
  };
}

/** Withdraws a match that is not approved; the line can be matched again. */
export async function takeBackMatch(
  tx: Transaction,
  by: Person,
  { lineId, matchId, reason }: { lineId: bigint; matchId: bigint; reason: string },
): Promise<Decided> {
  const open = await openMatchOf(tx, lineId, matchId);
  if (!open.ok) return open;
  const { line, match } = open;
  await endDecision(tx, "bank_matches", match.id, { by: by.id, why: reason });
  await lockTopup(tx, match.topupId);
  await saveTopupState(tx, match.topupId, match.topupState);
  const state = line.suspenseTransactionId === null ? "new" : "suspense";
  await saveLineState(tx, line.id, { state });
  return {
    ok: true,
    target: lineName(line),
    message: `the match of ${lineName(line)} was taken back`,
    before: { state: "matched", match: match.id },
    after: { state },
  };
}

/** Rejects a transfer, with a reason that its sender receives too. The money stays in suspense until it is returned. */
export async function rejectMatch(
  tx: Transaction,
  by: Person,
  { lineId, matchId, reason }: { lineId: bigint; matchId: bigint; reason: string },
): Promise<Decided> {
  const open = await openMatchOf(tx, lineId, matchId);
  if (!open.ok) return open;
  const { line, match } = open;
  await lockTopup(tx, match.topupId); // before the ledger, as an approval locks them
  const suspense = await postToSuspense(tx, line, {
    rateE8: match.rateE8,
    micros: match.micros,
    by: match.matchedById,
  });
  if (!suspense.ok) return suspense;
  await endDecision(tx, "bank_matches", match.id, { by: by.id, why: reason });
  await saveTopupState(tx, match.topupId, "rejected", reason);
  await saveLineState(tx, line.id, { state: "rejected", reason, ...suspense.posted });
  if (!match.isClosed) {
    const letter = rejectedLetter({
      amount: amountText(line.amountMinor, line.currency),
      reference: match.reference,
      reason,
    });
    await queueMail(tx, { ...letter, recipient: match.email, dedupKey: `topup ${match.topupId} rejected` });
  }
  return {
    ok: true,
    target: lineName(line),
    message: `${lineName(line)} is rejected; ${match.email} receives the reason by e-mail`,
    before: { state: "matched", match: match.id },
    after: { state: "rejected", account: match.accountId, topup: match.topupId },
  };
}

/** Returns the match on the operator's screen and locks its line. Refuses a match that is not current. */
async function openMatchOf(
  tx: Transaction,
  lineId: bigint,
  matchId: bigint,
): Promise<{ ok: true; line: BankLine; match: BankMatch } | { ok: false; problem: string }> {
  const line = await lockLine(tx, lineId);
  if (line === null) return { ok: false, problem: `there is no bank line ${lineId}` };
  const match = await findOpenMatch(tx, lineId);
  if (line.state !== "matched" || match === null) return { ok: false, problem: await whyNot(tx, line) };
  if (match.id === matchId) return { ok: true, line, match };
  return { ok: false, problem: `${lineName(line)} was matched again by ${match.matchedBy} meanwhile; check it again` };
}

/** Returns the top-up for a line: the announced one, or a new one if that was credited already. */
async function takeTopup(
  tx: Transaction,
  line: BankLine,
  { accountId, transfer }: Target,
): Promise<{ topupId: bigint; reference: string; topupState: BankMatch["topupState"] }> {
  const topup = transfer === null ? null : await lockTopup(tx, transfer.topupId);
  if (topup !== null && topup.state !== "credited" && topup.state !== "seen" && topup.state !== "rejected") {
    await saveTopupState(tx, topup.id, "seen");
    return { topupId: topup.id, reference: topup.reference, topupState: topup.state };
  }
  const details = topup === null ? { line: String(line.id) } : { line: String(line.id), again: topup.reference };
  const made = await makeTransfer(tx, { accountId, details });
  return { topupId: made.id, reference: made.reference, topupState: "cancelled" };
}

/** Explains why a line cannot be decided on: its state, and who changed it. */
async function whyNot(tx: Transaction, line: BankLine): Promise<string> {
  const [match] = await listMatches(tx, line.id);
  const name = lineName(line);
  if (line.state === "credited" && match?.approvedBy != null)
    return `${name} was approved by ${match.approvedBy} already`;
  if (line.state === "matched" && match !== undefined) return `${name} is matched by ${match.matchedBy} already`;
  const who = match?.endedBy == null ? "" : ` (the last match was ended by ${match.endedBy}: ${match.endedWhy})`;
  return `${name} is ${line.state}${who}; check it again`;
}
