import type { Wrong } from "./check-round.ts";
import { judgeWindow, type Judgement } from "../score/judge.ts";
import type { StoredForecast, StoredSpan } from "./verify-forecasts-store.ts";
import type { StoredScore } from "./verify-scores-store.ts";

/** How a forecast must have ended: its judgement, the round that ended it, and the earliest request of its rounds. */
export interface Ending {
  judgement: Judgement;
  settledSeq: string;
  requestedAt: string | null;
}

/**
 * How a window must have ended by its score at this place, or why there can be no such score.
 *
 * Rounds alone end it once and for ever. A conflict may come at any time: before that end it is the end, after it the
 * score is followed by a void, and what was void already stays as it is.
 */
export function endOfWindow(
  { pPpm, basePpm, span }: StoredForecast,
  score: StoredScore,
  { index, isNewest }: { index: number; isNewest: boolean },
): Ending | Wrong {
  if (span === null) return { expected: "the rounds of a window", found: "none" };
  const { status, settledSeq, requestedAt } = span;
  const voided: Judgement = { status: "void_quarantine", score: null };
  const known = span.conflicts.filter(({ applied }) => applied);
  if (index === 0 && score.status === "void_quarantine") {
    const conflict = known.find(({ seq }) => seq === String(score.settledSeq));
    const isFirst = conflict !== undefined && (settledSeq !== conflict.seq || status === "complete");
    if (isFirst) return { judgement: voided, settledSeq: conflict.seq, requestedAt: conflict.requestedAt };
  }
  if (status === "open" || settledSeq === null) {
    return { expected: "no score, since the window has not ended", found: score.status };
  }
  const isVoidedSince = status === "complete" && known.length > 0;
  if (index === 1 && isVoidedSince) return { judgement: voided, settledSeq, requestedAt };
  if (index > 0) return { expected: "no further score", found: score.status };
  if (isNewest && isVoidedSince) return { judgement: voided, settledSeq, requestedAt };
  return { judgement: judgeWindow({ pPpm, basePpm, status, hit: span.hit }), settledSeq, requestedAt };
}

/** What was expected and found where a window was issued before the one before it of its feature had ended; else null. */
export function checkOverlap(window: StoredForecast, before: StoredForecast): Wrong | null {
  const span = before.span;
  if (span !== null && endedBy(span, window)) return null;
  return {
    expected: `a window issued after the end of ${before.forecastId}`,
    found: `one after seq ${window.cutoffSeq}`,
  };
}

function endedBy(
  { settledSeq, conflicts }: StoredSpan,
  { cutoffSeq, issuedAtMicros }: { cutoffSeq: bigint; issuedAtMicros: bigint },
): boolean {
  if (settledSeq !== null && BigInt(settledSeq) <= cutoffSeq) return true;
  return conflicts.some(({ seq, seenAtMicros }) => BigInt(seq) <= cutoffSeq && BigInt(seenAtMicros) <= issuedAtMicros);
}
