/** A number below zero, a percentage, or a range of them: text that begins with a minus and is no formula. */
const NUMBERS = /^-\d[\d. %]*(?:to -?\d[\d. %]*)?$/;

/**
 * A field of CSV (RFC 4180), quoted if it must be.
 *
 * @example
 * csvField('a "b"'); // => '"a ""b"""'
 * csvField("=1+1"); // => "=1+1"
 */
export function csvField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * A field of CSV for spreadsheets: text that these would run as a formula begins with an apostrophe, and the minus sign of
 * a number is a hyphen, the only one that they read.
 *
 * @example
 * spreadsheetField("=HYPERLINK(1)"); // => "'=HYPERLINK(1)"
 * spreadsheetField("−2 % to −1 %"); // => "-2 % to -1 %"
 */
export function spreadsheetField(text: string): string {
  return csvField(withoutFormula(text.replaceAll(/−(?=\d)/g, "-")));
}

/**
 * Rows with their header as CSV for spreadsheets: text that these would run as a formula begins with an apostrophe.
 *
 * @example
 * csvText([["of", "n"], ['a "b"', "1"], ["=1+1", "-2"]]); // => 'of,n\r\n"a ""b""",1\r\n\'=1+1,-2\r\n'
 * csvText([["-2+3", "-99.00", "-0.5 % to 0.7 %"]]); // => "'-2+3,-99.00,-0.5 % to 0.7 %\r\n"
 */
export function csvText(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `${row.map(spreadsheetField).join(",")}\r\n`).join("");
}

function withoutFormula(text: string): string {
  const isFormula = /^[=+\-@＝＋－＠\t\r\n]/.test(text) && !NUMBERS.test(text);
  return isFormula ? `'${text}` : text;
}
