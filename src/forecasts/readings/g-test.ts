/**
 * Does a sample of colors look like the long run? The likelihood ratio test of Wilks (1935) and Sokal & Rohlf: G = 2 Σ
 * observed · ln(observed / expected), which for n independent rounds is about χ² with one degree of freedom less than
 * there are colors. A description, not evidence: over a day the newest 100 rounds take every value.
 */
import { errorFunction } from "simple-statistics";

/**
 * The share of random samples of this size that differ less from the expected shares than this one.
 *
 * @param observed rounds by color
 * @param shares expected share by color, each above zero
 * @example
 * gTestPercentile([50, 40, 10], [0.5, 0.4, 0.1]); // => 0
 * gTestPercentile([60, 30, 10], [0.5, 0.4, 0.1]); // => 0.900623
 * gTestPercentile([30, 70], [0.4, 0.6]); // => 0.962337
 */
export function gTestPercentile(observed: readonly number[], shares: readonly number[]): number {
  const all = observed.reduce((total, n) => total + n, 0);
  let g = 0;
  observed.forEach((n, k) => {
    if (n > 0) g += 2 * n * Math.log(n / (all * (shares[k] ?? 0)));
  });
  return chiSquaredBelow(Math.max(0, g), observed.length - 1);
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
