import type { IncomingMessage } from "node:http";
import { PageError } from "./errors.ts";

/** The largest form: a calibration's parameters are a few kilobytes. */
const LARGEST_FORM = 65_536;
/**
 * All failed runs that a queue keeps, or the largest selection elsewhere, and a few fields such as reason and password.
 */
const MOST_FIELDS = 1_100;

/** Form fields or query parameters by name; a repeated name has a list. */
export type Typed = Record<string, string | string[]>;

/**
 * Reads the form of a request.
 * @throws PageError if it is no form, larger than 64 KiB, or not text.
 */
export async function readForm(request: IncomingMessage): Promise<Typed> {
  const [type = ""] = (request.headers["content-type"] ?? "").split(";");
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LARGEST_FORM) throw new PageError(413, "the form is larger than 64 KiB; send less at once");
    chunks.push(chunk);
  }
  if (size > 0 && type.trim().toLowerCase() !== "application/x-www-form-urlencoded") {
    throw new PageError(415, "expected a form (application/x-www-form-urlencoded)");
  }
  return typed(new URLSearchParams(Buffer.concat(chunks).toString("utf8")));
}

/**
 * Returns parameters by name. @throws PageError if there are too many, or one contains a character that no text has.
 */
export function typed(params: URLSearchParams): Typed {
  const fields: Typed = Object.create(null) as Typed;
  let count = 0;
  for (const [name, value] of params) {
    count += 1;
    if (count > MOST_FIELDS) throw new PageError(413, `expected at most ${MOST_FIELDS} fields; send less at once`);
    if (/\0/.test(name + value)) throw new PageError(400, `the field ${JSON.stringify(name)} holds a zero byte`);
    const before = fields[name];
    const clean = value.toWellFormed();
    fields[name] = before === undefined ? clean : [...(Array.isArray(before) ? before : [before]), clean];
  }
  return fields;
}
