import { scoreNextColor, type NextColorScore } from "./scoring.ts";
import { colorIndex, type Band } from "./table-model.ts";

/** How a forecast ends. */
export type ScoreStatus = "scored" | "void_gap" | "void_house" | "void_quarantine" | "void_late";

/** A `next_color` forecast and the first on-time round taken in after its cutoff. */
export interface DueForecast {
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

/** What the forecast is worth: its score, or why it cannot be judged. */
export type Judgement =
  { status: "scored"; score: NextColorScore } | { status: Exclude<ScoreStatus, "scored">; score: null };

/**
 * Judges a `next_color` forecast. It is void, for good, where
 * - rounds are missing between its cutoff and the next round we have (`void_gap`: the next round is not its target),
 * - the house gave its target two results (`void_quarantine`), or
 * - its target was requested no later than it was issued (`void_late`: it could have been known).
 */
export function judgeNextColor(due: DueForecast, bands: readonly Band[]): Judgement {
  const isAnother = due.expectedRoundId !== null && due.expectedRoundId !== due.targetRoundId;
  if (due.targetAfterGap || isAnother) return { status: "void_gap", score: null };
  if (due.targetConflicts) return { status: "void_quarantine", score: null };
  if (due.targetRequestedAtMicros === null || due.targetRequestedAtMicros <= due.issuedAtMicros) {
    return { status: "void_late", score: null };
  }
  return { status: "scored", score: scoreNextColor(due.pPpm, due.basePpm, colorIndex(bands, due.targetColor)) };
}
