/** Quantile of the standard normal distribution at 0.975, to all digits of a double; approximations give 1.957. */
export const Z_95 = 1.959963984540054;

/**
 * Wilson's 95 % interval for a share; null for an empty sample.
 *
 * Wilson 1927; chosen over Wald after Brown, Cai & DasGupta 2001: at n = 20 and p = 0.05 it covers 92.5 %, Wald 63.9 %.
 *
 * @param hits how many of `n` were right
 * @example
 * wilsonInterval(81, 263); // => [0.2553, 0.3662]
 * wilsonInterval(0, 20); // => [0, 0.1611]
 * wilsonInterval(0, 0); // => null
 */
export function wilsonInterval(hits: number, n: number): [low: number, high: number] | null {
  if (n === 0) return null;
  const share = hits / n;
  const z2 = Z_95 * Z_95;
  const center = (share + z2 / (2 * n)) / (1 + z2 / n);
  const half = (Z_95 / (1 + z2 / n)) * Math.sqrt((share * (1 - share)) / n + z2 / (4 * n * n));
  // At the ends the formula gives exactly 0 and 1, but for rounding.
  return [hits === 0 ? 0 : center - half, hits === n ? 1 : center + half];
}

/**
 * 95 % interval of the skill 1 − LL/LL_base, from the paired gains d = ll_base − ll of the same forecasts; null if there
 * are fewer than two or LL_base is 0.
 *
 * (mean d ± 1.96·se) / mean ll_base with se² = Σ(d − mean d)² / (n(n − 1)): paired, because both were scored on the same
 * rounds and common noise cancels. With the best constant in hindsight as base, 0 to 2.5 % of intervals lie above
 * zero on fair tables (`npm run bench -- honesty`). Integers, since the terms of the variance almost cancel.
 *
 * @param sums n, Σd, Σd² and Σll_base of an accuracy row, in micro-nats
 * @example
 * skillInterval({ n: 4n, sumD: 10000n, sumD2: 1550000000n, sumLlBase: 3763632n }); // => [-0.020826, 0.02614]
 * skillInterval({ n: 1n, sumD: 20000n, sumD2: 400000000n, sumLlBase: 683197n }); // => null
 */
export function skillInterval({
  n,
  sumD,
  sumD2,
  sumLlBase,
}: Readonly<Record<"n" | "sumD" | "sumD2" | "sumLlBase", bigint>>): [low: number, high: number] | null {
  if (n < 2n || sumLlBase === 0n) return null;
  const skill = Number(sumD) / Number(sumLlBase);
  const half = (Z_95 * Math.sqrt(Number(n * sumD2 - sumD * sumD) / Number(n - 1n))) / Number(sumLlBase);
  return [skill - half, skill + half];
}

/**
 * Bounds of the hit rate if every void forecast had missed, and if every one had hit; null without forecasts.
 *
 * @param voids forecasts that could not be scored
 * @example
 * rateBounds(81, 263, 10); // => [0.2967, 0.3333]
 * rateBounds(0, 0, 2); // => [0, 1]
 * rateBounds(0, 0, 0); // => null
 */
export function rateBounds(hits: number, n: number, voids: number): [low: number, high: number] | null {
  return n + voids === 0 ? null : [hits / (n + voids), (hits + voids) / (n + voids)];
}
