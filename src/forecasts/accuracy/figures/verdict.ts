import { eValue, isOffTarget } from "./e-value.ts";
import { Z_95 } from "./intervals.ts";
import { PPM } from "../../model/ppm.ts";
import { hasTooManyVoids, type LossSums } from "./figures.ts";
import type { Sums } from "./sums.ts";

/** Verdict on the probabilities of a feature, in plain words. */
export type Verdict = "on target" | "off target" | "too many voids" | "too few" | "undecided" | "running";

/**
 * Scored forecasts before anything is stated about skill. The interval is a normal approximation, which needs about
 * fifty outcomes of the rarest color (one round in ten).
 */
export const LEAST_FOR_SKILL = 500;

/** Expected hits, and expected misses, that the normal approximation of z requires. */
const EXPECTED_LEAST = 5n;

/**
 * Whether the record supports the stated probabilities. Only the e-value over all time is valid under repeated looks, so
 * every other period is `running`: its z and interval are shown without a verdict.
 *
 * - `too many voids`: more than 5 % are void or late, and what was lost may not be like what was kept
 * - `off target`: the calibration e-value is at least 20 × the number of features and tables of the scope. A z beyond
 *   1.96 alone is not enough: one of twenty correct features exceeds it by chance.
 * - `too few`: fewer forecasts than a skill requires were scored, or fewer than five hits or five misses expected
 * - `on target`: the hits lie within 1.96 standard deviations of what was stated
 * - `undecided`: they lie beyond, and the e-value is too small for `off target`
 *
 * @param shown rows of the tables in the scope, of every feature and model, whichever of them are chosen to be shown
 * @example
 * const none = { voidGap: 0n, voidLate: 0n, voidConflict: 0n, voidImpossible: 0n, voidOperator: 0n, lateRounds: 0n };
 * const sums = { ...none, n: 500n, hits: 405n, sumP: 400000000n, sumPq: 80000000000000n, sumLnE: [0n] };
 * const all = { period: "all", shown: 1 };
 * verdictOf({ ...sums, voidGap: 26n }, all); // => "on target"
 * verdictOf({ ...sums, voidGap: 26n, lateRounds: 1n }, all); // => "too many voids"
 * verdictOf({ ...sums, hits: 372n }, all); // => "undecided"
 * verdictOf({ ...sums, sumLnE: [3000000n] }, all); // => "off target"
 * verdictOf({ ...sums, sumLnE: [3000000n] }, { period: "all", shown: 2 }); // => "on target"
 * verdictOf({ ...sums, sumLnE: [3000000n] }, { period: "30d", shown: 1 }); // => "running"
 * verdictOf({ ...sums, n: 499n }, all); // => "too few"
 * verdictOf({ ...sums, n: 499n, sumLnE: [3000000n] }, all); // => "off target"
 * verdictOf({ ...sums, hits: 498n, sumP: 496000000n }, all); // => "too few"
 */
export function verdictOf(
  sums: LossSums & Pick<Sums, "hits" | "sumP" | "sumPq" | "sumLnE">,
  { period, shown }: { period: string; shown: number },
): Verdict {
  const { n, hits, sumP, sumPq } = sums;
  if (hasTooManyVoids(sums)) return "too many voids";
  if (period !== "all") return "running";
  if (n > 0n && isOffTarget(eValue(sums.sumLnE), shown)) return "off target";
  const expected = sumP < n * BigInt(PPM) - sumP ? sumP : n * BigInt(PPM) - sumP;
  if (n < LEAST_FOR_SKILL || expected < EXPECTED_LEAST * BigInt(PPM)) return "too few";
  const z = Number(hits * BigInt(PPM) - sumP) / Math.sqrt(Number(sumPq));
  return Math.abs(z) <= Z_95 ? "on target" : "undecided";
}
