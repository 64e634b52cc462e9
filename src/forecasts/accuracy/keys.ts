/** Which key of a sum vector holds what. Changing a key is a new format of `sum-vector.ts`. */
import { BETS_IN_TWENTIETHS } from "../score/scoring.ts";
import { REFERENCE_SUMS } from "./figures/reference-sums.ts";

/** Counts and sums: ppm for p, ppm² for pq, Brier and RPS, micro-nats for log losses. */
export const KEY = {
  /** Forecasts issued; those not scored and not void are pending. */
  forecasts: 0,
  /** Forecasts scored, and hits among them. */
  n: 1,
  hits: 2,
  /** Voids by reason: gap, late, conflict, impossible, operator; see `voidKey`. */
  firstVoid: 3,
  /** Rounds received since the table's first forecast, on time or late; late ones among them. Only of next_color. */
  rounds: 8,
  lateRounds: 9,
  /** Rounds without a forecast; of a window: sets in which one was due and not issued. */
  notIssued: 10,
  sumP: 11,
  sumPBase: 12,
  sumPq: 13,
  sumBrier: 14,
  sumBrierBase: 15,
  /** RPS of next_color; that of a window is its Brier score. */
  sumRps: 16,
  sumRpsBase: 17,
  sumLl: 18,
  sumLlBase: 19,
  /** One key per bet of the calibration e-value. */
  firstLnE: 20,
  /** See `referenceKey`. */
  firstReference: 20 + BETS_IN_TWENTIETHS.length,
  /** Forecasts settled that a cosigned checkpoint of the log covered before the first round after them was requested. */
  sealed: 60,
  /** One key per color of next_color. */
  firstBrierOfColor: 64,
  firstRpsOfColor: 72,
  /** See `outcomeKey`. */
  firstOutcome: 80,
  /** See `binKey`. */
  firstBin: 2560,
} as const;

/** The causes of voids as stored in `reasons`, from 1. */
export const VOID_REASONS = ["gap", "late", "conflict", "impossible", "operator"] as const;

/** The key of voids for a stored reason, 1 to 5. */
export function voidKey(reason: number): number {
  if (VOID_REASONS[reason - 1] === undefined)
    throw new RangeError(
      `expected the reason of a void from 1 to ${VOID_REASONS.length}, found ${reason}; the score is damaged`,
    );
  return KEY.firstVoid + reason - 1;
}

/** The first key of a reference, by its place in `REFERENCES`; the order of the others is that of `REFERENCE_SUMS`. */
export function referenceKey(place: number): number {
  return KEY.firstReference + place * REFERENCE_SUMS.length;
}

/**
 * The first of three keys of forecasts with one outcome: how many, Σ log loss and Σ log loss² (micro-nats). An outcome
 * of next_color is a color; of a window it is its horizon with whether it hit, so that the best constant chances in
 * hindsight follow.
 */
export function outcomeKey(outcome: number): number {
  return KEY.firstOutcome + outcome * 3;
}

/** The outcome of a window for `outcomeKey`. */
export function windowOutcome(horizon: number, isHit: boolean): number {
  return horizon * 2 + Number(isHit);
}

/** Bins of one color: p div 1000 ppm, 0 to 1000. */
export const BINS = 1001;

/** The first of three keys of a bin of stated probabilities: number, Σ p, hits. A window is color 0. */
export function binKey(color: number, bin: number): number {
  return KEY.firstBin + (color * BINS + bin) * 3;
}
