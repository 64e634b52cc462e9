import { escape } from "./escape.ts";

/**
 * Converts a text to HTML; text between backticks becomes code.
 *
 * @example
 * prose("ask `/a` & wait"); // => "ask <code>/a</code> &amp; wait"
 */
export function prose(text: string): string {
  return text
    .split("`")
    .map((part, at) => (at % 2 === 0 ? escape(part) : `<code>${escape(part)}</code>`))
    .join("");
}
