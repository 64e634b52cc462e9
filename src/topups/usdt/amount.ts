/** Micro-units: six decimal places. */
const MICRO_DECIMALS = 6;
/** A thousand times all the USDT there is: a larger amount is a broken token or a false answer. */
const MOST_MICROS = 10n ** 21n / 10n ** 3n;

/** An amount of tokens as money, and what is left of it below a micro-unit. */
export interface Amount {
  micros: bigint;
  /** In the token's smallest unit; below one micro-unit. */
  restUnits: bigint;
}

/**
 * An amount in the smallest unit of a token as micro-units, rounded down: one USDT counts as one USD. What is left over is
 * given too, so that nothing of it is lost from the books. Null where no such amount can be.
 *
 * @example
 * amountOf(25_000_000n, 6); // => { micros: 25_000_000n, restUnits: 0n }
 * amountOf(1_999_999_999_999n, 18); // => { micros: 1n, restUnits: 999_999_999_999n }
 * amountOf(7n, 2); // => { micros: 70_000n, restUnits: 0n }
 * amountOf(2n ** 255n, 6); // => null
 */
export function amountOf(units: bigint, decimals: number): Amount | null {
  const perMicro = 10n ** BigInt(Math.max(0, decimals - MICRO_DECIMALS));
  const perUnit = 10n ** BigInt(Math.max(0, MICRO_DECIMALS - decimals));
  const micros = (units / perMicro) * perUnit;
  return units <= 0n || micros > MOST_MICROS ? null : { micros, restUnits: units % perMicro };
}
