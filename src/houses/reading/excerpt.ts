import { cut } from "../../text.ts";
import { WireNumber } from "./wire-json.ts";

/** Enough to recognize a number; a house can send one with millions of digits. */
const LONGEST_NUMBER = 40;

/**
 * The first `max` characters of an external text, safe to print on one line: control characters, line separators and lone
 * surrogates are shown as `\u2028`, runs of spaces as one.
 */
export function excerpt(text: string, max = 80): string {
  const start = text.slice(0, max * 4).replaceAll(/[ \t\r\n]+/g, " ");
  return start
    .trim()
    .slice(0, max)
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, escapeCharacter);
}

/** A value of an item for a reason: texts in quotes, numbers as received, everything else by its kind. */
export function describe(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "string") return value === "" ? "an empty text" : `"${excerpt(value, 40)}"`;
  if (typeof value === "number" || typeof value === "boolean" || value instanceof WireNumber) {
    return cut(String(value), LONGEST_NUMBER);
  }
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return value === undefined ? "nothing" : "an object";
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
