const DECIMAL = /^(?:0|-?[1-9]\d*)$/;

/**
 * Parses an integer in canonical decimal form: no plus sign, no negative zero, no leading zeros.
 *
 * @throws Error on any other text
 * @example
 * exactInteger("-2522"); // => -2522n
 */
export function exactInteger(text: unknown): bigint {
  if (typeof text === "string" && DECIMAL.test(text)) return BigInt(text);
  throw new Error(`${JSON.stringify(text) ?? "nothing"} where a whole number belongs`);
}
