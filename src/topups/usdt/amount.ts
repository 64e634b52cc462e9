/** Micro-units: six decimal places. */
const MICRO_DECIMALS = 6;
/** A thousand times all existing USDT: a larger amount means a broken token or a false response. */
const MOST_MICROS = 10n ** 21n / 10n ** 3n;

/** An amount of tokens as money, and the remainder below a micro-unit. */
export interface Amount {
  micros: bigint;
  /** In the token's smallest unit; less than one micro-unit. */
  restUnits: bigint;
}

/**
 * Converts an amount in a token's smallest unit into micro-units, rounded down: one USDT counts as one USD. Returns the
 * remainder too, so that the books lose nothing. Null if the amount is impossible.
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
