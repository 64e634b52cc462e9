/** Elements whose text needs no quotes inside an array: numbers, booleans and times. */
export type Plain = number | bigint | boolean | string | null;

/**
 * The text of a PostgreSQL array of values that need no quotes. The driver would quote and escape each element, which
 * takes it several times as long.
 *
 * @example
 * plainArray([1, null, 3n]) // => "{1,NULL,3}"
 */
export function plainArray(values: readonly Plain[]): string {
  let text = "{";
  for (const value of values) text += `${text === "{" ? "" : ","}${value ?? "NULL"}`;
  return `${text}}`;
}

/**
 * The text of a PostgreSQL array of any texts.
 *
 * @example
 * textArray(["a", 'b"c', null]) // => '{"a","b\\"c",NULL}'
 */
export function textArray(values: readonly (string | null)[]): string {
  return plainArray(values.map((value) => (value === null ? null : `"${value.replaceAll(/["\\]/g, "\\$&")}"`)));
}

/** The text of an array of arrays of numbers as texts: each is cast by itself, since they may differ in length. */
export function arraysArray(values: readonly (readonly Plain[])[]): string {
  return plainArray(values.map((value) => `"${plainArray(value)}"`));
}

/** The text of a bytea array; each element is given in hexadecimal digits. */
export function hexArray(values: readonly (string | null)[]): string {
  return plainArray(values.map((value) => (value === null ? null : `"\\\\x${value}"`)));
}
