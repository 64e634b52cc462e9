/** One USD in micro-units. */
const USD = 1_000_000n;
/** What a bigint column of PostgreSQL holds; more is no amount of money that anybody has. */
const MOST_MICROS = 2n ** 63n - 1n;
/** Twelve digits before the point: below what a bigint column holds, and more than all the money there is of ours. */
const AMOUNT = /^(\d{1,12})(?:\.(\d{1,6}))?$/;

/**
 * Micro-units as USD: two decimals, and more only where there are more.
 *
 * @example
 * usd(29_000_000n); // => "29.00"
 * usd(1_505_000n); // => "1.505"
 * usd(-1n); // => "-0.000001"
 * usd(0n); // => "0.00"
 */
export function usd(micros: bigint): string {
  const size = micros < 0n ? -micros : micros;
  const decimals = String(size % USD)
    .padStart(6, "0")
    .replace(/0{1,4}$/, "");
  return `${micros < 0n ? "-" : ""}${size / USD}.${decimals}`;
}

/**
 * Micro-units as USD to cents, with thousands separated, for reading; never more than there is.
 *
 * @example
 * usdCents(1_200_003_349n); // => "1,200.00"
 * usdCents(-1_999_999n); // => "-1.99"
 */
export function usdCents(micros: bigint): string {
  const size = micros < 0n ? -micros : micros;
  const cents = size / 10_000n;
  const sign = micros < 0n && cents > 0n ? "-" : "";
  return `${sign}${(cents / 100n).toLocaleString("en-US")}.${String(cents % 100n).padStart(2, "0")}`;
}

/**
 * Separates the thousands of an amount, for reading.
 *
 * @example
 * thousands("1234567.505 EUR"); // => "1,234,567.505 EUR"
 * thousands("-1200.00"); // => "-1,200.00"
 */
export function thousands(amount: string): string {
  return amount.replace(/^-?\d+/, (whole) => whole.replaceAll(/\d(?=(?:\d{3})+$)/g, "$&,"));
}

/**
 * Parses an amount of USD that a person typed, in micro-units; null if it is none: digits, and after a point one to six more.
 * No sign, no thousands separator and no comma, since the same text means different amounts to different people.
 *
 * @example
 * parseUsd("29"); // => 29_000_000n
 * parseUsd(" 0.000001 "); // => 1n
 * parseUsd("1,000"); // => null
 * parseUsd("-5"); // => null
 * parseUsd("1.0000001"); // => null
 */
export function parseUsd(text: string): bigint | null {
  const [, whole, decimals = ""] = AMOUNT.exec(text.trim()) ?? [];
  return whole === undefined ? null : BigInt(whole) * USD + BigInt(decimals.padEnd(6, "0"));
}

/**
 * The sum of amounts, in micro-units. Every amount and the sum must fit what the database holds.
 * @throws RangeError where one does not.
 *
 * @example
 * sumMicros([29_000_000n, -29_000_000n]); // => 0n
 * sumMicros([]); // => 0n
 */
export function sumMicros(amounts: readonly bigint[]): bigint {
  return amounts.reduce((sum, amount) => inRange(inRange(amount) + sum), 0n);
}

function inRange(micros: bigint): bigint {
  if (micros > MOST_MICROS || micros < -MOST_MICROS) {
    throw new RangeError(`expected an amount of at most ${usd(MOST_MICROS)} USD either way, got ${usd(micros)}`);
  }
  return micros;
}
