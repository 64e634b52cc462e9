import { scoreNextColor, scoreWindow, type NextColorScore, type Score, type WindowScore } from "./scoring.ts";
import { colorIndex, type Band } from "../model/table-model.ts";

/** How a forecast ends. */
export type ScoreStatus = "scored" | "void_gap" | "void_house" | "void_quarantine" | "void_late";

/** A `next_color` forecast and the first on-time round taken in after its cutoff. */
export interface DueNextColor {
  pPpm: readonly number[];
  basePpm: readonly number[];
  /** Issue time and the round's request time in microseconds since the epoch. */
  issuedAtMicros: bigint;
  targetRequestedAtMicros: bigint | null;
  /** The round that was meant, where ids count up, and the one that came. */
  expectedRoundId: string | null;
  targetRoundId: string;
  targetColor: string;
  /** Rounds were missing before it when it was taken in. */
  targetAfterGap: boolean;
  /** It came with more than one result. */
  targetConflicts: boolean;
}

/** What a forecast is worth: its score, or why it cannot be judged. */
export type Judgement<Given extends Score = Score> =
  { status: "scored"; score: Given } | { status: Exclude<ScoreStatus, "scored">; score: null };

/**
 * Judges a `next_color` forecast. It is void, for good, where
 * - rounds are missing between its cutoff and the next round we have (`void_gap`: the next round is not its target),
 * - its target was requested no later than it was issued (`void_late`: it could have been known), or
 * - the house gave its target two results (`void_quarantine`).
 *
 * In this order: another result may come at any time, and what is void already must stay void for the same reason.
 */
export function judgeNextColor(due: DueNextColor, bands: readonly Band[]): Judgement<NextColorScore> {
  const isAnother = due.expectedRoundId !== null && due.expectedRoundId !== due.targetRoundId;
  if (due.targetAfterGap || isAnother) return { status: "void_gap", score: null };
  if (due.targetRequestedAtMicros === null || due.targetRequestedAtMicros <= due.issuedAtMicros) {
    return { status: "void_late", score: null };
  }
  if (due.targetConflicts) return { status: "void_quarantine", score: null };
  return { status: "scored", score: scoreNextColor(due.pPpm, due.basePpm, colorIndex(bands, due.targetColor)) };
}

/** How a span of rounds has ended: all there and without a fault, or with the first fault. */
export type SpanEnd = "complete" | "void_gap" | "void_late" | "void_quarantine";

/** A window that has ended. */
export interface DueWindow {
  pPpm: readonly number[];
  basePpm: readonly number[];
  status: SpanEnd;
  /** The color was among its rounds. */
  hit: boolean;
}

/**
 * Judges a window by its nominal span, as `window_span` in the database tells of it: a fault anywhere in it voids the
 * window even if the color had come before. Dropping only windows that a fault cut short would favor hits.
 *
 * @throws Error if the window does not have one probability and one baseline
 */
export function judgeWindow({ pPpm, basePpm, status, hit }: DueWindow): Judgement<WindowScore> {
  if (status !== "complete") return { status, score: null };
  return { status: "scored", score: scoreWindowRow(pPpm, basePpm, hit) };
}

/** The outcome of a scored forecast as it is stored: the index of the color that came, of a window 1 or 0. */
export function outcomeOf(score: Score): number {
  return score.kind === "window" ? Number(score.hit) : score.outcome;
}

/** The score of a forecast from its row and its stored outcome. */
export function scoreOutcome(pPpm: readonly number[], basePpm: readonly number[], outcome: number): Score {
  // a table has two colors at least, so one probability is that of a window
  return pPpm.length === 1 ? scoreWindowRow(pPpm, basePpm, outcome === 1) : scoreNextColor(pPpm, basePpm, outcome);
}

function scoreWindowRow(pPpm: readonly number[], basePpm: readonly number[], hit: boolean): WindowScore {
  const [[p], [base]] = [pPpm, basePpm];
  if (p === undefined || base === undefined || pPpm.length > 1 || basePpm.length > 1)
    throw new RangeError("expected one probability and one baseline of a window; the forecast row is damaged");
  return scoreWindow(p, base, hit);
}
