/** The longest sentence that is stored about what came from outside: a reason, an error. */
export const LONGEST_REASON = 500;

/**
 * Cuts a text of external origin to `most` characters that a text column accepts: without NUL and halves
 * of characters. An ellipsis replaces what is cut off.
 *
 * @example
 * cut("refused", 10); // => "refused"
 * cut("7777777777", 4); // => "777…"
 * cut("a\0b", 10); // => "a�b"
 */
export function cut(text: string, most: number): string {
  const kept = text.length <= most ? text : `${text.slice(0, most - 1)}…`;
  return kept.replaceAll("\0", "\u{fffd}").toWellFormed();
}

/** The same text in memory of its own: one that was cut out of a large text keeps all of that in memory. */
export function copied(text: string): string {
  return Buffer.from(text).toString();
}
