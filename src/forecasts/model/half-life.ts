/** ln 2 to 64 decimals, as an integer. */
const LN_2 = 6931471805599453094172321214581765680755001343602552541206800094n;
const ONE = 10n ** 64n;

/**
 * The decay of a weight per round for a half-life in rounds: 2^(−1/rounds), correctly rounded.
 *
 * By the series of exp in integers of 64 decimals, since `Math.pow` may differ in its last bit between machines and a
 * replay must not.
 *
 * @throws RangeError unless it is a whole number from 1
 * @example
 * halfLifeDecay(1); // => 0.5
 * halfLifeDecay(200); // => 0.9965402628278678
 * halfLifeDecay(2000); // => 0.9996534864594093
 */
export function halfLifeDecay(rounds: number): number {
  if (!Number.isSafeInteger(rounds) || rounds < 1)
    throw new RangeError(`expected a half-life of whole rounds from 1, got ${rounds}`);
  const x = LN_2 / BigInt(rounds);
  let term = ONE;
  let sum = ONE;
  for (let k = 1n; term !== 0n; k++) {
    term = (-term * x) / (ONE * k);
    sum += term;
  }
  return Number(`0.${String(sum).padStart(64, "0")}`);
}
