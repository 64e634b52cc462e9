/** A text that a table program takes as it is: quoted where it must be, and never a formula. */
function cell(text: string): string {
  const plain = /^[=+@\t\r]/.test(text) || /^-(?!\d)/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

/**
 * Rows as CSV (RFC 4180), with their head.
 *
 * @example
 * csvText([["of", "n"], ['a "b"', "1"], ["=1+1", "-2"]]); // => 'of,n\r\n"a ""b""",1\r\n\'=1+1,-2\r\n'
 */
export function csvText(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}
