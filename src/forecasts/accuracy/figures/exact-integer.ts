const DECIMAL = /^(?:0|-?[1-9]\d*)$/;

/**
 * An integer from the one text that stands for it in a row of sums: decimal, no sign before zero, no leading zeros.
 *
 * @throws Error on anything else
 * @example
 * exactInteger("-2522"); // => -2522n
 */
export function exactInteger(text: unknown): bigint {
  if (typeof text === "string" && DECIMAL.test(text)) return BigInt(text);
  throw new Error(`${JSON.stringify(text) ?? "nothing"} where a whole number belongs`);
}
