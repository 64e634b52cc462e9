/** A number below zero, a percentage, or a range of them: what begins with a minus and is no formula. */
const NUMBERS = /^-\d[\d. %]*(?:to -?\d[\d. %]*)?$/;

/** A text that a table program takes as it is: quoted where it must be, and never a formula. */
function cell(text: string): string {
  const isFormula = /^[=+\-@＝＋－＠\t\r\n]/.test(text) && !NUMBERS.test(text);
  const plain = isFormula ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

/**
 * Rows as CSV (RFC 4180), with their head.
 *
 * @example
 * csvText([["of", "n"], ['a "b"', "1"], ["=1+1", "-2"]]); // => 'of,n\r\n"a ""b""",1\r\n\'=1+1,-2\r\n'
 * csvText([["-2+3", "-99.00", "-0.5 % to 0.7 %"]]); // => "'-2+3,-99.00,-0.5 % to 0.7 %\r\n"
 */
export function csvText(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}
