/** Currencies whose smallest unit is not a hundredth (ISO 4217). */
const WITHOUT_DECIMALS = new Set("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(" "));
const WITH_THREE = new Set("BHD IQD JOD KWD LYD OMR TND".split(" "));
/** Ten billion in a currency with hundredths: a larger amount is a typo. */
const MOST_MINOR = 1_000_000_000_000n;
/** The strongest currency is worth about 3.3 USD; a higher rate is probably inverted. */
const MOST_RATE_E8 = 10n * 100_000_000n;
/** The rate of USD to USD. */
export const RATE_OF_USD = 100_000_000n;

/** A parsed value, or the problem with the text that was typed. */
export type Parsed<Value> = { ok: true; value: Value } | { ok: false; problem: string };

/** The sign before the decimals of an amount. */
export type DecimalMark = "." | ",";

/**
 * Returns the number of decimals of a currency.
 *
 * @example
 * decimalsOf("EUR"); // => 2
 * decimalsOf("JPY"); // => 0
 * decimalsOf("KWD"); // => 3
 */
export function decimalsOf(currency: string): number {
  return WITHOUT_DECIMALS.has(currency) ? 0 : WITH_THREE.has(currency) ? 3 : 2;
}

/**
 * Parses an amount from a statement into the smallest unit of its currency. The amount must be above zero and have no
 * more decimals than the currency; the decimal separator is a point or a comma. Thousands may be separated by spaces or
 * by the other sign. One sign before three digits is unclear unless the currency has three decimals and `decimalMark` is
 * that sign; if that is unknown, a point is one, as in what {@link amountText} writes.
 *
 * @example
 * parseAmount("1234.5", "EUR"); // => { ok: true, value: 123_450n }
 * parseAmount("1.234,50", "EUR"); // => { ok: true, value: 123_450n }
 * parseAmount("1,234", "EUR"); // => { ok: false, problem: "1,234 may be one or a thousand; write it with 2 decimals" }
 * parseAmount("1,234", "KWD"); // => { ok: false, problem: "1,234 may be one or a thousand; write 1234, or 1.2340 for three decimals" }
 * parseAmount("1.234", "KWD"); // => { ok: true, value: 1_234n }
 * parseAmount("0.001", "USD"); // => { ok: false, problem: "0.001 has more decimals than the 2 of USD" }
 * parseAmount("-5", "USD"); // => { ok: false, problem: "-5 is below zero; expected an amount above it" }
 */
export function parseAmount(text: string, currency: string, decimalMark: DecimalMark | null = null): Parsed<bigint> {
  const typed = text.trim();
  const shown = typed.slice(0, 40);
  const refuse = (problem: string) => ({ ok: false, problem: `${shown} ${problem}` }) as const;
  if (typed === "") return { ok: false, problem: "expected an amount" };
  if (/^[-−(]/.test(typed)) return refuse("is below zero; expected an amount above it");
  const { whole, mark, fraction, isUnclear } = partsOf(typed);
  if (whole === "" || whole.length > 20 || (mark !== undefined && whole.includes(mark))) {
    return refuse("is no amount; expected one such as 1234.50");
  }
  const decimals = decimalsOf(currency);
  if (isUnclear && (decimals !== 3 || mark !== (decimalMark ?? "."))) {
    const advice = `write ${decimals === 3 ? `${whole}${fraction}, or ${whole}.${fraction}0 for three` : `it with ${decimals}`}`;
    return refuse(`may be one or a thousand; ${advice} decimals`);
  }
  if (fraction.length > decimals && !/^0*$/.test(fraction.slice(decimals))) {
    return refuse(`has more decimals than the ${decimals} of ${currency}`);
  }
  const minor = BigInt(whole.replaceAll(/[.,]/g, "") + fraction.slice(0, decimals).padEnd(decimals, "0"));
  if (minor === 0n) return refuse("is nothing");
  if (minor > MOST_MINOR) return refuse(`is more than ${amountText(MOST_MINOR, currency)}; is a digit too many in it?`);
  return { ok: true, value: minor };
}

/**
 * Returns the decimal mark that amounts of one file prove: with both marks, or with digits that cannot be thousands. Null if
 * none does, or if some prove the other mark.
 *
 * @example
 * decimalMarkOf(["250.000", "0.750"]); // => "."
 * decimalMarkOf(["250.000", "1.234"]); // => null
 */
export function decimalMarkOf(amounts: readonly string[]): DecimalMark | null {
  const parts = amounts.map((text) => partsOf(text.trim().replace(/^[-−]/, "")));
  const marks = new Set(
    parts.flatMap(({ whole, mark, isUnclear }) =>
      mark === undefined || whole.includes(mark) || isUnclear ? [] : mark,
    ),
  );
  const [mark] = marks;
  return marks.size === 1 && (mark === "." || mark === ",") ? mark : null;
}

/** The digits of an amount, without signs and spaces; unclear are one to three digits, a mark and three digits. */
function partsOf(text: string): { whole: string; mark: string | undefined; fraction: string; isUnclear: boolean } {
  const bare = text.replaceAll(/[\s'\u{2019}]/gu, "").replace(/^\+/, "");
  const [, whole = "", mark, fraction = ""] =
    /^(\d+|\d{1,3}(?:,\d{3})+|\d{1,3}(?:\.\d{3})+)(?:([.,])(\d*))?$/.exec(bare) ?? [];
  return { whole, mark, fraction, isUnclear: /^\d{1,3}[.,]\d{3}$/.test(bare) && !/^0[.,]/.test(bare) };
}

/**
 * Formats an amount with its currency.
 *
 * @example
 * amountText(123_450n, "EUR"); // => "1234.50 EUR"
 * amountText(5n, "USD"); // => "0.05 USD"
 * amountText(1_000n, "JPY"); // => "1000 JPY"
 */
export function amountText(minor: bigint, currency: string): string {
  const decimals = decimalsOf(currency);
  if (decimals === 0) return `${minor} ${currency}`;
  const digits = String(minor).padStart(decimals + 1, "0");
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)} ${currency}`;
}

/**
 * Parses a rate: USD for one unit of a currency, in 1e-8. It is above zero, at most 10, with at most 8 decimals. For
 * USD the text is empty and the rate is 1.
 *
 * @example
 * parseRate("1.0823", "EUR"); // => { ok: true, value: 108_230_000n }
 * parseRate("", "USD"); // => { ok: true, value: 100_000_000n }
 * parseRate("1.1", "USD"); // => { ok: false, problem: "a USD is a USD: leave the rate empty" }
 * parseRate("0", "EUR"); // => { ok: false, problem: "0 is no rate; expected USD for one EUR, such as 1.0823" }
 */
export function parseRate(text: string, currency: string): Parsed<bigint> {
  const typed = text.trim().replace(",", ".");
  const [, whole, decimals = ""] = /^(\d{1,2})(?:\.(\d{1,8}))?$/.exec(typed) ?? [];
  const value = whole === undefined ? null : BigInt(whole + decimals.padEnd(8, "0"));
  if (currency === "USD") {
    return typed === "" || value === RATE_OF_USD
      ? { ok: true, value: RATE_OF_USD }
      : { ok: false, problem: "a USD is a USD: leave the rate empty" };
  }
  if (value === null || value === 0n || value > MOST_RATE_E8) {
    const shown = typed === "" ? "nothing" : typed.slice(0, 40);
    return { ok: false, problem: `${shown} is no rate; expected USD for one ${currency}, such as 1.0823` };
  }
  return { ok: true, value };
}

/**
 * Formats a rate.
 *
 * @example
 * rateText(108_230_000n); // => "1.0823"
 * rateText(100_000_000n); // => "1"
 */
export function rateText(rateE8: bigint): string {
  const decimals = String(rateE8 % RATE_OF_USD)
    .padStart(8, "0")
    .replace(/0+$/, "");
  return `${rateE8 / RATE_OF_USD}${decimals === "" ? "" : `.${decimals}`}`;
}

/**
 * Returns the value of an amount in 1e-6 USD, rounded down.
 *
 * @example
 * toMicros({ minor: 10_000n, currency: "EUR", rateE8: 108_230_000n }); // => 108_230_000n
 * toMicros({ minor: 1n, currency: "JPY", rateE8: 649_351n }); // => 6_493n
 */
export function toMicros({ minor, currency, rateE8 }: { minor: bigint; currency: string; rateE8: bigint }): bigint {
  return (minor * rateE8) / 100n / 10n ** BigInt(decimalsOf(currency));
}
