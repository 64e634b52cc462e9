import type { Writable } from "node:stream";
import { finished } from "node:stream/promises";

/** A value as a line of COPY's text format has it; null is the null of SQL. */
export function copyField(text: string | null): string {
  if (text === null) return "\\N";
  return /[\\\t\n\r]/.test(text) ? text.replaceAll(/[\\\t\n\r]/g, (mark) => ESCAPED[mark] ?? mark) : text;
}

const ESCAPED: Record<string, string> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };

/**
 * Sends whole lines of COPY's text format, or all of its binary format, to a COPY that has begun, and waits until the
 * server has them.
 * @throws what the server refuses about a line or, at the end, about all of them.
 */
export async function copyLines(copy: Writable, lines: string | Buffer): Promise<void> {
  const isStored = finished(copy);
  copy.end(lines);
  await isStored;
}
