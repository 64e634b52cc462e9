import { LARGEST_BODY } from "../../houses/polling/http.ts";
import { indented } from "../../frame/text/indented.ts";
import { gunzipSync } from "node:zlib";
import { reasonOf } from "../../errors.ts";

/** A payload body as a page shows it. */
export interface ShownBody {
  /** Its beginning, or why it cannot be shown. */
  text: string;
  isText: boolean;
  isWhole: boolean;
  /** Characters left out. */
  hidden: number;
}

/** The limit of a page; the download has everything. */
const SHOWN_CHARACTERS = 32_768;
const BYTES_IN_HEX = 1_024;

/** The beginning of a stored body, JSON indented; bytes that are not text in hexadecimal. Never throws. */
export function showBody(compressed: Buffer): ShownBody {
  const read = unpack(compressed);
  if ("problem" in read) return { text: read.problem, isText: false, isWhole: false, hidden: 0 };
  const text = textOf(read.body);
  const whole = text === null ? hexOf(read.body.subarray(0, BYTES_IN_HEX)) : indentedJson(text);
  const shown = whole.slice(0, SHOWN_CHARACTERS).toWellFormed();
  const isWhole = shown.length === whole.length && (text !== null || read.body.length <= BYTES_IN_HEX);
  return { text: shown, isText: text !== null, isWhole, hidden: whole.length - shown.length };
}

/** A stored body as a file: unchanged if it is text, else as base64. */
export function bodyFile(compressed: Buffer, receivedAt: string): { file: string; type: string; text: string } | null {
  const read = unpack(compressed);
  if ("problem" in read) return null;
  const text = textOf(read.body);
  const name = `payload-${receivedAt.replaceAll(":", "")}`;
  // never as HTML: what a house sends must not run here
  return text === null
    ? { file: `${name}.base64`, type: "text/plain", text: read.body.toString("base64") }
    : { file: `${name}.txt`, type: "text/plain", text };
}

function unpack(compressed: Buffer): { body: Buffer } | { problem: string } {
  try {
    return { body: gunzipSync(compressed, { maxOutputLength: LARGEST_BODY }) };
  } catch (error) {
    return { problem: `the stored body cannot be decompressed: ${reasonOf(error)}` };
  }
}

function textOf(body: Buffer): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return null;
  }
}

/** Larger bodies take too long to indent. */
const LARGEST_INDENTED = 1_000_000;

function indentedJson(text: string): string {
  return text.length > LARGEST_INDENTED ? text : indented(text);
}

function hexOf(bytes: Buffer): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += 16) {
    lines.push(
      (
        bytes
          .subarray(at, at + 16)
          .toString("hex")
          .match(/../g) ?? []
      ).join(" "),
    );
  }
  return lines.join("\n");
}
