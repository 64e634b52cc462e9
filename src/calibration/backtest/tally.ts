/**
 * Fast sums of a replay: the same integers as sums of the scores of `scoring.ts`, in doubles while these are exact.
 *
 * A replay scores four forecasts per round; a score object and forty BigInt sums would take longer than the model. This
 * allocates nothing, and moves the doubles to BigInts before any can exceed 2^53. `tally.test.ts` compares the result with
 * rows made score by score.
 *
 * The number of colors fixes the length of every indexed array, hence the `!`.
 */
import { PIT_BINS } from "../../forecasts/accuracy/figures/pit.ts";
import { largest, PPM } from "../../forecasts/model/ppm.ts";
import { BETS_IN_TWENTIETHS, microNats } from "../../forecasts/score/scoring.ts";
import { type Bins, emptySums, type Histogram, histogramOf, type Sums } from "../../forecasts/accuracy/figures/sums.ts";

/** Running sums of one feature. */
export type Tally = {
  readonly colors: number;
  /** The scalar sums in the order of `FIELDS`, then Brier and RPS parts and outcomes by color, bets, and PIT bins. */
  readonly fast: Float64Array;
  readonly whole: bigint[];
  /** By color and thousandth: number, sum in ppm, hits. Exact for 9 billion statements. */
  readonly bins: Float64Array;
  /** Scores in `fast`. */
  held: number;
};

const FIELDS = [
  "forecasts",
  "n",
  "hits",
  "voidGap",
  "sumP",
  "sumPBase",
  "sumPq",
  "sumBrier",
  "sumBrierBase",
  "sumRps",
  "sumRpsBase",
  "sumLl",
  "sumLlBase",
] as const;
const AT = Object.fromEntries(FIELDS.map((name, index) => [name, index])) as Record<(typeof FIELDS)[number], number>;
const BETS = BETS_IN_TWENTIETHS.length;

/** The greatest term is an RPS of eight colors, 7·10¹²: a thousand of them stay below 2^53 (9·10¹⁵). */
const HELD_MAX = 1000;

const BINS = 1000;
const PPM_PER_BIN = 1000;

/** An empty tally. `colors` is the number of the table's colors for `next_color` and 1 for a window. */
export function createTally(colors: number): Tally {
  const length = FIELDS.length + 3 * colors + BETS + PIT_BINS;
  return {
    colors,
    fast: new Float64Array(length),
    whole: Array.from({ length }, () => 0n),
    bins: new Float64Array(colors * BINS * 3),
    held: 0,
  };
}

/** Counts a forecast. */
export function tallyForecast({ fast }: Tally): void {
  fast[AT.forecasts]! += 1;
}

/** Counts a window with missing rounds. */
export function tallyGap({ fast }: Tally): void {
  fast[AT.voidGap]! += 1;
}

/** Scores a `next_color` forecast and adds it: the sums of `scoreNextColor`. */
export function tallyNextColor(
  tally: Tally,
  pPpm: readonly number[],
  basePpm: readonly number[],
  outcome: number,
): void {
  const { fast, colors } = tally;
  if (!(outcome < colors)) throw new RangeError(`expected a color from 0 to ${colors - 1}, got ${outcome}`);
  const top = largest(pPpm);
  const hit = top === outcome;
  let brier = 0;
  let brierBase = 0;
  let rps = 0;
  let rpsBase = 0;
  let p = 0;
  let base = 0;
  for (let k = 0; k < colors; k++) {
    const occurred = k === outcome ? PPM : 0;
    const square = (pPpm[k]! - occurred) * (pPpm[k]! - occurred);
    brier += square;
    brierBase += (basePpm[k]! - occurred) * (basePpm[k]! - occurred);
    p += pPpm[k]!;
    base += basePpm[k]!;
    const until = k >= outcome ? PPM : 0;
    const cumulated = (p - until) * (p - until);
    rps += cumulated;
    rpsBase += (base - until) * (base - until);
    fast[FIELDS.length + k]! += square;
    fast[FIELDS.length + colors + k]! += cumulated;
    tallyStatement(tally, k, pPpm[k]!, k === outcome);
  }
  fast[FIELDS.length + 2 * colors + outcome]! += 1;
  fast[AT.sumBrier]! += brier;
  fast[AT.sumBrierBase]! += brierBase;
  fast[AT.sumRps]! += rps;
  fast[AT.sumRpsBase]! += rpsBase;
  tallyScored(tally, pPpm[top]!, basePpm[top]!, hit, microNats(pPpm[outcome]!), microNats(basePpm[outcome]!));
}

/** Scores a window and adds it: the sums of `scoreWindow`. */
export function tallyWindow(tally: Tally, pPpm: number, basePpm: number, hit: boolean): void {
  const { fast } = tally;
  const occurred = hit ? PPM : 0;
  const brier = (pPpm - occurred) * (pPpm - occurred);
  const brierBase = (basePpm - occurred) * (basePpm - occurred);
  fast[AT.sumBrier]! += brier;
  fast[AT.sumBrierBase]! += brierBase;
  fast[AT.sumRps]! += brier;
  fast[AT.sumRpsBase]! += brierBase;
  tallyStatement(tally, 0, pPpm, hit);
  tallyScored(tally, pPpm, basePpm, hit, microNats(hit ? pPpm : PPM - pPpm), microNats(hit ? basePpm : PPM - basePpm));
}

/** The common part of both kinds: probabilities of the hit, losses, and gains of the bets. */
function tallyScored(tally: Tally, p: number, base: number, hit: boolean, ll: number, llBase: number): void {
  const { fast, colors } = tally;
  fast[AT.n]! += 1;
  if (hit) fast[AT.hits]! += 1;
  fast[AT.sumP]! += p;
  fast[AT.sumPBase]! += base;
  fast[AT.sumPq]! += p * (PPM - p);
  fast[AT.sumLl]! += ll;
  fast[AT.sumLlBase]! += llBase;
  const bets = FIELDS.length + 3 * colors;
  const surprise = (hit ? PPM : 0) - p;
  for (let i = 0; i < BETS; i++) {
    const stake = (20 * PPM + BETS_IN_TWENTIETHS[i]! * surprise) / (20 * PPM);
    fast[bets + i]! += Math.floor(Math.log(stake) * PPM + 0.5);
  }
  tally.held += 1;
  if (tally.held >= HELD_MAX) settle(tally);
}

/** Adds a finished wait for the top color. */
export function tallyWait({ fast, colors }: Tally, massPpm: readonly number[]): void {
  const pit = FIELDS.length + 3 * colors + BETS;
  for (let i = 0; i < PIT_BINS; i++) fast[pit + i]! += massPpm[i]!;
}

/** The tally as an accuracy row; first and last stay empty. */
export function sumsOfTally(tally: Tally): Sums {
  settle(tally);
  const { whole, colors, bins } = tally;
  const sums = emptySums();
  FIELDS.forEach((name, index) => (sums[name] = whole[index]!));
  const part = (from: number, length: number) => whole.slice(FIELDS.length + from, FIELDS.length + from + length);
  const isScored = sums.n > 0n;
  // a window has no parts by color, and no feature has any before the first score
  if (isScored && colors > 1) {
    sums.brierByColor = part(0, colors);
    sums.rpsByColor = part(colors, colors);
    sums.confusion = part(2 * colors, colors);
  }
  sums.sumLnE = part(3 * colors, BETS);
  const pit = part(3 * colors + BETS, PIT_BINS);
  if (pit.some((mass) => mass > 0n)) sums.pit = pit;
  if (isScored) sums.histograms = Array.from({ length: colors }, (_, k) => histogramOfColor(bins, k));
  return sums;
}

function tallyStatement({ bins }: Tally, k: number, pPpm: number, isHit: boolean): void {
  const at = (k * BINS + Math.floor(pPpm / PPM_PER_BIN)) * 3;
  bins[at]! += 1;
  bins[at + 1]! += pPpm;
  if (isHit) bins[at + 2]! += 1;
}

function histogramOfColor(bins: Float64Array, k: number): Histogram {
  const found: Bins = new Map();
  for (let index = 0; index < BINS; index++) {
    const at = (k * BINS + index) * 3;
    const n = bins[at]!;
    if (n === 0) continue;
    found.set(index, { n, sumP: bins[at + 1]!, hits: bins[at + 2]! });
  }
  return histogramOf(found);
}

function settle(tally: Tally): void {
  const { fast, whole } = tally;
  for (let i = 0; i < fast.length; i++) {
    if (fast[i] === 0) continue;
    whole[i]! += BigInt(fast[i]!);
    fast[i] = 0;
  }
  tally.held = 0;
}
