import { isNewerAnchor } from "../../rounds/proofs/proofs.ts";
import type { IntakePlan } from "../../rounds/intake.ts";
import type { HeadRow, RoundRow } from "./rows.ts";
import type { PassResponse } from "./response.ts";
import type { PassState } from "./state.ts";
import { sevenDigits } from "./times.ts";

/** When the new rounds of a response were last absent; null if unknown, as after a step of the database's clock back. */
export function absentAtOf(head: HeadRow, response: PassResponse): string | null {
  if (response.from !== "poll" && response.from !== "stored") return null;
  const isPolled = response.from === "poll";
  const absentAt = isPolled ? (response.isAhead ? null : head.respondedAt) : response.absentAt;
  return absentAt !== null && absentAt <= response.requestedAt ? absentAt : null;
}

/**
 * The head after a response, without the effect of its rounds. `respondedAt` is the time since which later rounds are
 * absent: the request of the newest response that proves it. An unreadable or empty one (`isUseless`) and its repeats
 * prove nothing: null stays null until another payload.
 */
export function afterResponse(head: HeadRow, response: PassResponse, isUseless: boolean): HeadRow {
  if (response.from === "stored") {
    return isUseless && response.sha256 === head.payloadSha256 ? { ...head, respondedAt: null } : head;
  }
  if (response.from !== "poll") return head;
  const { absence, payload, isRepeat, requestedAt } = response;
  const isAsBefore = absence === "as_before" || (isRepeat && head.respondedAt === null && head.payloadSha256 !== null);
  const respondedAt = isUseless || absence === "forgotten" ? null : isAsBefore ? head.respondedAt : requestedAt;
  if (payload === null) return respondedAt === head.respondedAt ? head : { ...head, respondedAt };
  const partSha256 = response.read?.ok === true ? response.part : null;
  return { ...head, respondedAt, payloadSha256: payload.sha256, partSha256, payloadPath: payload.path };
}

/** The head after a response with its new rounds, of which `rounds` are the rows. */
export function headAfter(
  { head, table }: PassState,
  response: PassResponse,
  { state: after, onTime }: IntakePlan,
  rounds: readonly RoundRow[],
): HeadRow {
  const read = response.read?.ok === true ? response.read : null;
  const base = afterResponse(head, response, read?.items.length === 0);
  const anchor = read?.anchor ?? null;
  const isNewer = anchor !== null && isNewerAnchor(anchor, anchorOf(head));
  const proof = isNewer ? { proofNumber: anchor.number, proofHash: anchor.hash, proofOf: anchor.of } : null;
  if (rounds.length === 0) return proof === null ? base : { ...base, ...proof };
  const newest = rounds.findLast(({ late }) => !late);
  const isPolled = rounds[0]?.source === 0;
  const { receivedAt } = response;
  return {
    ...base,
    ...proof,
    lastSeq: after.lastSeq,
    lastOrdinal: head.lastOrdinal + BigInt(onTime),
    historyHash: after.historyHash,
    newestSeq: newest?.seq ?? head.newestSeq,
    newestRoundId: after.newestRoundId,
    newestNumber: table.roundIds === "consecutive" ? after.newestNumber : null,
    newestOccurredAt: exactly(after.newestOccurredAt),
    sameHundredths: after.sameHundredths,
    sameCount: after.sameCount,
    lastRoundAt: later(head.lastRoundAt, receivedAt),
    lastPolledRoundAt: isPolled ? later(head.lastPolledRoundAt, receivedAt) : head.lastPolledRoundAt,
  };
}

function anchorOf({ proofNumber: number, proofHash: hash, proofOf: of }: HeadRow) {
  return number === null || hash === null || of === null ? null : { number, hash, of };
}

function later(time: string | null, other: string): string {
  return time !== null && time > other ? time : other;
}

/** A time with seven digits, as it is hashed and stored. */
export function exactly(time: string | null): string | null {
  return time === null ? null : sevenDigits(time);
}
