/**
 * Do two samples of colors have the same shares? The likelihood ratio test of Wilks (1935) and Sokal & Rohlf: G = 2 Σ
 * observed · ln(observed / expected) over both samples, expected by the shares of both together, which for independent
 * rounds is about χ² with one degree of freedom less than there are colors. A description, not evidence: over a day the
 * newest 100 rounds take every value.
 */
import { errorFunction, sum } from "simple-statistics";

/**
 * The share of pairs of random samples of these sizes that differ less than these two.
 *
 * @param newer rounds by color
 * @param older rounds by color before them; both samples have rounds
 * @example
 * gTestPercentile([50, 40, 10], [500, 400, 100]); // => 0
 * gTestPercentile([60, 30, 10], [500, 400, 100]); // => 0.878028
 * gTestPercentile([30, 70, 0], [45, 55, 0]); // => 0.971945
 */
export function gTestPercentile(newer: readonly number[], older: readonly number[]): number {
  const both = newer.map((n, color) => n + (older[color] ?? 0));
  const all = sum(both);
  const g = [newer, older].flatMap((sample) => {
    const size = sum(sample);
    return sample.map((n, color) => (n === 0 ? 0 : 2 * n * Math.log((n * all) / (size * (both[color] ?? 0)))));
  });
  const seen = both.filter((n) => n > 0).length;
  return chiSquaredBelow(Math.max(0, sum(g)), Math.max(1, seen - 1)); // with one color G is 0, and so is the share
}

/**
 * P(χ² < x) with a whole number of degrees of freedom, by the finite sums of Abramowitz & Stegun 26.4.4 and 26.4.5.
 *
 * @example
 * chiSquaredBelow(3.841459, 1); // => 0.95
 * chiSquaredBelow(5.991465, 2); // => 0.95
 * chiSquaredBelow(14.06714, 7); // => 0.95
 */
export function chiSquaredBelow(x: number, degrees: number): number {
  const half = x / 2;
  let above = 0;
  let term = degrees % 2 === 0 ? Math.exp(-half) : Math.exp(-half) * 2 * Math.sqrt(half / Math.PI);
  // each term derives from the previous one; both sums run to degrees/2
  for (let i = degrees % 2 === 0 ? 0 : 0.5; i < degrees / 2 - 0.5 + 1e-9; i++) {
    above += term;
    term *= half / (i + 1);
  }
  if (degrees % 2 === 1) above += 1 - errorFunction(Math.sqrt(half));
  return Math.min(1, Math.max(0, 1 - above));
}
