/**
 * Issued probabilities are integers in parts per million: they are the same on every machine, sum exactly, and have one
 * text to hash.
 */

/** One, in parts per million. */
export const PPM = 1_000_000;

/** Sums of a mixture differ from 1 by rounding alone: 1e-9 is a million times more than that. */
const SUM_TOLERANCE = 1e-9;

/**
 * Colors in ppm by the largest remainder, ties to the lower color: every color at least 1, the sum exactly 1,000,000.
 *
 * A color that would get 0 is raised to 1 at the cost of the likeliest, since 0 has an infinite log loss.
 *
 * @throws RangeError if the probabilities do not sum to 1
 * @example
 * nextColorPpm([1 / 3, 1 / 3, 1 / 3]); // => [333334, 333333, 333333]
 * nextColorPpm([0.5058445, 0.3952525, 0.098903]); // => [505845, 395252, 98903]
 * nextColorPpm([0.9999999, 0.0000001]); // => [999999, 1]
 */
export function nextColorPpm(p: ArrayLike<number>): number[] {
  const ppm: number[] = [];
  const remainders: number[] = [];
  let sum = 0;
  let left = PPM;
  for (let k = 0; k < p.length; k++) {
    const exact = p[k]! * PPM;
    const whole = Math.floor(exact);
    ppm.push(whole);
    remainders.push(exact - whole);
    sum += p[k]!;
    left -= whole;
  }
  if (!(Math.abs(sum - 1) <= SUM_TOLERANCE))
    throw new RangeError(`expected probabilities that sum to 1, got a sum of ${sum}; the model state is damaged`);
  return roundUp(ppm, remainders, left);
}

/**
 * Adds the rest `left` to ppm that were rounded down, by the largest remainder, ties to the lower color; then raises a 0
 * to 1 at the cost of the greatest. Changes both arrays, and returns the first.
 */
export function roundUp(ppm: number[], remainders: number[], left: number): number[] {
  for (let rest = left; rest > 0; rest--) {
    const k = largest(remainders);
    ppm[k]! += 1;
    remainders[k] = -1;
  }
  for (let k = 0; k < ppm.length; k++) {
    if (ppm[k]! > 0) continue;
    ppm[largest(ppm)]! -= 1;
    ppm[k] = 1;
  }
  return ppm;
}

/**
 * One probability in ppm, to the nearest and never 0 or 1,000,000: nothing issued is certain, and a certainty that
 * failed would have an infinite log loss.
 *
 * @example
 * ppmOf(0.8113764); // => 811376
 * ppmOf(0.99999999); // => 999999
 */
export function ppmOf(p: number): number {
  return Math.min(PPM - 1, Math.max(1, Math.floor(p * PPM + 0.5)));
}

/** Index of the greatest value, the lowest of several: "the likeliest color, ties to the lower". */
export function largest(values: ArrayLike<number>): number {
  let best = 0;
  for (let k = 1; k < values.length; k++) if (values[k]! > values[best]!) best = k;
  return best;
}
