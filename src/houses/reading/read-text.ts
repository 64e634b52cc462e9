import { cut, LONGEST_REASON } from "../../text.ts";
import { excerpt } from "./excerpt.ts";
import { parseWireJson } from "./wire-json.ts";

/** Bodies that several tables read, each with its parsed value. */
const shared = new WeakMap<Buffer, Parsed<unknown> | null>();

/** Parses a body once, however many tables read it; their adapters must not change the value. */
export function shareParsing(body: Buffer): void {
  if (!shared.has(body)) shared.set(body, null);
}

/** Drops the parsed value of a body that its tables have read, so that it is not in memory until the body is stored. */
export function forgetParsed(body: Buffer): void {
  if (shared.has(body)) shared.set(body, null);
}

/** A body as text or as JSON, or the reason why it cannot be decoded. */
export type Parsed<Value> = { ok: true; value: Value } | { ok: false; reason: string };

/** Decodes a body as UTF-8, without its byte order mark; `expected` names the expected content in the reason. */
export function decodeText(body: Buffer, expected: { what: string; advice: string }): Parsed<string> {
  try {
    return { ok: true, value: new TextDecoder("utf-8", { fatal: true }).decode(body) };
  } catch {
    // the decoder throws on the first byte that is not UTF-8
    return { ok: false, reason: foundInstead(expected, "bytes that are not UTF-8", body.toString("latin1")) };
  }
}

/** Parses a body as JSON with every digit kept; HTML and empty bodies have separate reasons, since their causes differ. */
export function decodeJson(body: Buffer, expected: { what: string; advice: string }): Parsed<unknown> {
  const known = shared.get(body) ?? parse(body, expected);
  if (known.ok && shared.has(body)) shared.set(body, known);
  return known;
}

function parse(body: Buffer, expected: { what: string; advice: string }): Parsed<unknown> {
  const text = decodeText(body, expected);
  if (!text.ok) return text;
  if (text.value.trim() === "") return { ok: false, reason: foundInstead(expected, "an empty body", "") };
  if (/^\s*</.test(text.value)) return { ok: false, reason: foundInstead(expected, "HTML or XML", text.value) };
  const parsed = parseWireJson(text.value);
  return parsed.ok ? parsed : { ok: false, reason: foundInstead(expected, parsed.reason, text.value) };
}

/** The reason for a response that is not what was expected, with its beginning and the remedy. */
export function foundInstead({ what, advice }: { what: string; advice: string }, found: string, text: string): string {
  const shown = excerpt(text);
  return cut(
    `expected ${what}, found ${found}${shown === "" ? "" : `, beginning with: ${shown}`}; ${advice}`,
    LONGEST_REASON,
  );
}
