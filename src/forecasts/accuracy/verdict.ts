import { eValue, isOffTarget } from "./e-value.ts";
import { Z_95 } from "./intervals.ts";
import { PPM } from "../model/ppm.ts";
import type { Sums } from "./sums.ts";

/** What the record of a feature allows to be said of its probabilities, in plain words. */
export type Verdict = "on target" | "off target" | "too many voids" | "too few" | "undecided";

/** Above this share of forecasts that could not be judged nobody may call the rest on target. */
const VOIDS_MAX_PERCENT = 20n;

/** The normal approximation behind z wants as many expected hits, and as many misses. */
const EXPECTED_LEAST = 5n;

/**
 * Whether the stated probabilities hold up.
 *
 * - `off target`: the calibration e-value is 20 or more, however many voids there are. A z beyond 1.96 alone never says
 *   so: of many features and periods one in twenty is there by luck.
 * - `too many voids`: more than a fifth of what ended was void, and what was lost may not be like what was kept
 * - `too few`: fewer than five hits or five misses were to be expected
 * - `on target`: the hits lie within 1.96 standard deviations of what was stated
 * - `undecided`: they lie beyond, and the evidence is not enough to call it a fault
 *
 * @example
 * const sums = { n: 100n, hits: 81n, sumP: 80000000n, sumPq: 16000000000000n, sumLnE: [0n] };
 * const voids = { voidGap: 25n, voidHouse: 0n, voidQuarantine: 0n, voidLate: 0n };
 * verdictOf({ ...sums, ...voids }); // => "on target"
 * verdictOf({ ...sums, ...voids, voidLate: 1n }); // => "too many voids"
 * verdictOf({ ...sums, ...voids, hits: 72n }); // => "undecided"
 * verdictOf({ ...sums, ...voids, sumLnE: [3000000n] }); // => "off target"
 * verdictOf({ ...sums, ...voids, voidGap: 0n, n: 20n, hits: 16n, sumP: 16000000n }); // => "too few"
 */
export function verdictOf(
  sums: Pick<
    Sums,
    "n" | "hits" | "sumP" | "sumPq" | "sumLnE" | "voidGap" | "voidHouse" | "voidQuarantine" | "voidLate"
  >,
): Verdict {
  const { n, hits, sumP, sumPq } = sums;
  if (n > 0n && isOffTarget(eValue(sums.sumLnE))) return "off target";
  const voids = sums.voidGap + sums.voidHouse + sums.voidQuarantine + sums.voidLate;
  if (voids * 100n > (n + voids) * VOIDS_MAX_PERCENT) return "too many voids";
  const expected = sumP < n * BigInt(PPM) - sumP ? sumP : n * BigInt(PPM) - sumP;
  if (expected < EXPECTED_LEAST * BigInt(PPM)) return "too few";
  const z = Number(hits * BigInt(PPM) - sumP) / Math.sqrt(Number(sumPq));
  return Math.abs(z) <= Z_95 ? "on target" : "undecided";
}
