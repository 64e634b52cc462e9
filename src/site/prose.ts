import { escape } from "../frame/escape.ts";

/**
 * HTML of a text in which what is between backticks is code.
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
