/** A value as a line of COPY's text format has it; null is the null of SQL. */
export function copyField(text: string | null): string {
  if (text === null) return "\\N";
  return /[\\\t\n\r]/.test(text) ? text.replaceAll(/[\\\t\n\r]/g, (mark) => ESCAPED[mark] ?? mark) : text;
}

const ESCAPED: Record<string, string> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };
