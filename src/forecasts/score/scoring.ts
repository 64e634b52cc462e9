/**
 * Scores one forecast against its outcome, in integers.
 *
 * Everything that is summed is an integer, so that sums merge in any order and a backfill gives the same digits:
 * probabilities in ppm, squares in ppm², log losses in micro-nats. All are far below 2^53 and therefore exact.
 * Log loss is the primary score (local and proper: Gneiting & Raftery 2007), Brier the second, the ranked probability
 * score (Epstein 1969, not divided by K − 1) the third.
 */
import { largest, PPM } from "../model/ppm.ts";

/**
 * The stakes λ of the calibration e-value in twentieths: ∓1/2, ∓1/4, ∓1/10. Negative stakes gain if forecasts are too
 * high, positive ones if they are too low; large stakes detect a large bias early, only small stakes detect a small one.
 */
export const BETS_IN_TWENTIETHS = [-10, -5, -2, 2, 5, 10] as const;

/** Scores that both kinds of forecast have. */
type CommonScore = {
  hit: boolean;
  /** Forecast and baseline probability of the hit, ppm; the forecast's variance p(1−p), ppm². */
  pPpm: number;
  basePpm: number;
  pq: number;
  /** ppm². */
  brier: number;
  brierBase: number;
  rps: number;
  rpsBase: number;
  /** Micro-nats. */
  ll: number;
  llBase: number;
  /** Gain of each bet of `BETS_IN_TWENTIETHS` against the probability of the hit, micro-nats. */
  lnE: readonly number[];
};

/** Score of a `next_color` forecast: a hit means that its likeliest color occurred. */
export type NextColorScore = CommonScore & {
  kind: "next_color";
  /** Index of the color that occurred. */
  outcome: number;
  /** The forecast by color, and each color's part of the Brier score and of the RPS (the last is 0). */
  pPpmByColor: readonly number[];
  brierByColor: readonly number[];
  rpsByColor: readonly number[];
};

/** Score of a window: a hit means that the color occurred within its rounds. */
export type WindowScore = CommonScore & { kind: "window" };

export type Score = NextColorScore | WindowScore;

/**
 * Scores a `next_color` forecast and its baseline, both as issued.
 *
 * @param outcome index of the color that occurred
 * @throws RangeError if the two differ in their number of colors or the outcome is not one of them
 * @example
 * scoreNextColor([505000, 396000, 99000], [504000, 397000, 99000], 1).hit; // => false
 * scoreNextColor([505000, 396000, 99000], [504000, 397000, 99000], 1).brier; // => 629642000000
 * scoreNextColor([505000, 396000, 99000], [504000, 397000, 99000], 1).rps; // => 264826000000
 * scoreNextColor([505000, 396000, 99000], [504000, 397000, 99000], 1).ll; // => 926341
 */
export function scoreNextColor(pPpm: readonly number[], basePpm: readonly number[], outcome: number): NextColorScore {
  const stated = pPpm[outcome];
  const statedBase = basePpm[outcome];
  if (pPpm.length !== basePpm.length || stated === undefined || statedBase === undefined)
    throw new RangeError(
      `expected forecast and baseline of the same colors and one of them as outcome, got ${pPpm.join("|")}, ` +
        `${basePpm.join("|")} and ${outcome}; the forecast row is damaged`,
    );
  const top = largest(pPpm);
  const p = pPpm[top]!;
  const brierByColor = squares(pPpm, outcome);
  const rpsByColor = cumulativeSquares(pPpm, outcome);
  return {
    kind: "next_color",
    outcome,
    hit: top === outcome,
    pPpm: p,
    basePpm: basePpm[top]!,
    pq: p * (PPM - p),
    brier: sum(brierByColor),
    brierBase: sum(squares(basePpm, outcome)),
    rps: sum(rpsByColor),
    rpsBase: sum(cumulativeSquares(basePpm, outcome)),
    ll: microNats(stated),
    llBase: microNats(statedBase),
    lnE: betMicroNats(p, top === outcome),
    pPpmByColor: pPpm,
    brierByColor,
    rpsByColor,
  };
}

/**
 * Scores a window and its baseline, both as issued. With two outcomes the RPS has one term, which is the Brier score.
 *
 * @param hit whether the color occurred within the rounds of the window
 * @example
 * scoreWindow(811376, 810000, true).brier; // => 35579013376
 * scoreWindow(811376, 810000, true).ll; // => 209024
 */
export function scoreWindow(pPpm: number, basePpm: number, hit: boolean): WindowScore {
  const brier = square(pPpm - (hit ? PPM : 0));
  const brierBase = square(basePpm - (hit ? PPM : 0));
  return {
    kind: "window",
    hit,
    pPpm,
    basePpm,
    pq: pPpm * (PPM - pPpm),
    brier,
    brierBase,
    rps: brier,
    rpsBase: brierBase,
    ll: microNats(hit ? pPpm : PPM - pPpm),
    llBase: microNats(hit ? basePpm : PPM - basePpm),
    lnE: betMicroNats(pPpm, hit),
  };
}

/**
 * Log loss of a probability whose event occurred, in micro-nats: ⌊−ln(p)·10⁶ + ½⌋.
 *
 * `Math.log` may differ in its last bit between machines, yet no ppm value lies nearer to a rounding boundary than
 * 1.3e-6 micro-nats, six hundred times that error, so this integer is the same everywhere.
 *
 * @throws RangeError unless the probability is an integer from 1 to 1,000,000
 * @example
 * microNats(500000); // => 693147
 * microNats(1); // => 13815511
 * microNats(1000000); // => 0
 */
export function microNats(pPpm: number): number {
  checkPpm(pPpm);
  return Math.floor(-Math.log(pPpm / PPM) * PPM + 0.5);
}

/**
 * The log return of a bet of λ on the hit, for each λ of `BETS_IN_TWENTIETHS`: ⌊ln(1 + λ(y − p))·10⁶ + ½⌋ micro-nats,
 * where y is 1 for a hit and 0 for a miss. If p is true the bet is fair given any past, so that sums of these test the
 * forecasts at any time and in any grouping.
 *
 * The same integer on every machine, as `microNats`: the argument is one division of exact integers, and for all ppm
 * values, both outcomes and all six bets no result is nearer to a rounding boundary than 4.2e-8 micro-nats, two hundred
 * times the error of `Math.log` and the division. The rounding error of a sum over n forecasts is at most n/2 micro-nats
 * (0.05 in ln e for a hundred thousand), and about √n/3 micro-nats if p varies.
 *
 * @throws RangeError unless the probability is an integer from 1 to 1,000,000
 * @example
 * betMicroNats(811376, true); // => [-99060, -48304, -19043, 18687, 46078, 90126]
 * betMicroNats(811376, false); // => [340527, 184689, 78014, -84619, -226705, -520351]
 */
export function betMicroNats(pPpm: number, hit: boolean): number[] {
  checkPpm(pPpm);
  const surprise = (hit ? PPM : 0) - pPpm;
  return BETS_IN_TWENTIETHS.map((bet) => Math.floor(Math.log((20 * PPM + bet * surprise) / (20 * PPM)) * PPM + 0.5));
}

function checkPpm(pPpm: number): void {
  if (!Number.isInteger(pPpm) || pPpm < 1 || pPpm > PPM)
    throw new RangeError(`expected a probability from 1 to 1000000 ppm, got ${pPpm}; the forecast row is damaged`);
}

function squares(pPpm: readonly number[], outcome: number): number[] {
  return pPpm.map((p, k) => square(p - (k === outcome ? PPM : 0)));
}

/** Squared distance of the cumulated forecast from the cumulated outcome, up to and including each color. */
function cumulativeSquares(pPpm: readonly number[], outcome: number): number[] {
  let cumulated = 0;
  return pPpm.map((p, k) => square((cumulated += p) - (k >= outcome ? PPM : 0)));
}

function square(x: number): number {
  return x * x;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** The score of a forecast from its row and its stored outcome. */
export function scoreOutcome(pPpm: readonly number[], basePpm: readonly number[], outcome: number): Score {
  // a table has at least two colors, so a single probability is a window
  return pPpm.length === 1 ? scoreWindowRow(pPpm, basePpm, outcome === 1) : scoreNextColor(pPpm, basePpm, outcome);
}

function scoreWindowRow(pPpm: readonly number[], basePpm: readonly number[], hit: boolean): WindowScore {
  const [[p], [base]] = [pPpm, basePpm];
  if (p === undefined || base === undefined || pPpm.length > 1 || basePpm.length > 1)
    throw new RangeError("expected one probability and one baseline of a window; the forecast row is damaged");
  return scoreWindow(p, base, hit);
}
