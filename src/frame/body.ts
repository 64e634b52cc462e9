import type { IncomingMessage } from "node:http";
import { PageError } from "./errors.ts";

/** The largest form: a calibration's parameters are a few kilobytes. */
const LARGEST_FORM = 65_536;
/**
 * All failed runs that a queue keeps, or the largest selection elsewhere, and a few fields such as reason and password.
 */
const MOST_FIELDS = 1_100;

/**
 * A browser shows a response only after it has sent its form, so a file that is too large is still received, and not kept, up
 * to this size. Beyond it the connection is closed.
 */
const MOST_RECEIVED = 16_777_216;

/** Parts of a multipart form, and bytes of each one's headers: 1 MB of headers would take the parser 0.6 s. */
const MOST_PARTS = 20;
const MOST_PART_HEADERS = 4_096;

/** Form fields or query parameters by name; a repeated name has a list. */
export type Typed = Record<string, string | string[]>;

/** The one text file that a form may have. */
export interface FileInput {
  /** The name of its field. The field has the text of the file, and `NAME_file` the file's name. */
  field: string;
  maxBytes: number;
}

/** What reading a form needs of a request. */
type FormRequest = Pick<IncomingMessage, "headers"> & AsyncIterable<Buffer>;

/** Whether a form was sent in parts. It is sent again the same way: urlencoded, its file's text could exceed the limit. */
export function isMultipart(request: Pick<IncomingMessage, "headers">): boolean {
  return typeOf(request) === "multipart/form-data";
}

const received = new WeakMap<FormRequest, Buffer>();

/**
 * Receives the body of a request before it is known what reads it. `readForm` takes it from here.
 * @param largestFile the bytes of the file that the form may have, 0 for none
 * @throws PageError if it is too large.
 */
export async function receiveForm(request: FormRequest, largestFile: number): Promise<void> {
  received.set(request, await readBody(request, largestFile));
}

/**
 * Reads the form of a request: urlencoded, or multipart if it may have a file.
 * @throws PageError if it is no form, larger than 64 KiB (with a file: than its limit), or not text.
 */
export async function readForm(request: FormRequest, file: FileInput | null = null): Promise<Typed> {
  const largestFile = file?.maxBytes ?? 0;
  const body = received.get(request) ?? (await readBody(request, largestFile));
  requireSize(body.length, LARGEST_FORM + largestFile);
  if (file !== null && isMultipart(request)) {
    return readMultipart(body, request.headers["content-type"] ?? "", file);
  }
  if (body.length > 0 && typeOf(request) !== "application/x-www-form-urlencoded") {
    throw new PageError(415, "expected a form (application/x-www-form-urlencoded)");
  }
  return typed(new URLSearchParams(body.toString("utf8")));
}

function typeOf({ headers }: Pick<IncomingMessage, "headers">): string {
  const [type = ""] = (headers["content-type"] ?? "").split(";");
  return type.trim().toLowerCase();
}

async function readBody(request: FormRequest, largestFile: number): Promise<Buffer> {
  const limit = LARGEST_FORM + largestFile;
  const mostReceived = largestFile === 0 ? limit : MOST_RECEIVED;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size <= limit) chunks.push(chunk);
    if (size > mostReceived) break;
  }
  requireSize(size, limit);
  return Buffer.concat(chunks);
}

function requireSize(size: number, limit: number): void {
  if (size > limit) {
    throw new PageError(413, `expected a form of at most ${Math.floor(limit / 1_024)} KiB; send it in parts`);
  }
}

/** Fields and file of a multipart form, read by the parser of fetch(). An empty file input counts as not sent. */
async function readMultipart(body: Buffer, type: string, { field, maxBytes }: FileInput): Promise<Typed> {
  requireSmallParts(body, type);
  const form = await new Response(new Uint8Array(body), { headers: { "content-type": type } })
    .formData()
    .catch(() => null);
  if (form === null) throw new PageError(400, "expected a complete multipart form");
  const fields = new URLSearchParams();
  for (const [name, value] of form) {
    if (typeof value === "string") fields.append(name, value);
    else if (name !== field) throw new PageError(400, `expected a file in ${field} alone, found one in ${name}`);
    else if (value.size > maxBytes) throw new PageError(413, `expected a file of at most ${maxBytes / 1_024} KiB`);
    else if (value.size > 0) {
      fields.append(field, decodeText(new Uint8Array(await value.arrayBuffer())));
      fields.append(`${field}_file`, value.name);
    }
  }
  return typed(fields);
}

function requireSmallParts(body: Buffer, type: string): void {
  const boundary = /;\s*boundary=(?:"([^"]+)"|([^\s;"]+))/i.exec(type);
  const delimiter = `--${boundary?.[1] ?? boundary?.[2] ?? ""}`;
  let parts = 0;
  for (let at = body.indexOf(delimiter); at !== -1; at = body.indexOf(delimiter, at + delimiter.length)) {
    const headers = body.subarray(at + delimiter.length, at + delimiter.length + MOST_PART_HEADERS);
    const isTooLong = headers.length === MOST_PART_HEADERS && !headers.includes("\r\n\r\n");
    parts += 1; // the end of the form is also a delimiter
    if (parts > MOST_PARTS + 1 || isTooLong) {
      throw new PageError(
        413,
        `expected a form of at most ${MOST_PARTS} parts with headers of at most ${MOST_PART_HEADERS} bytes`,
      );
    }
  }
}

/**
 * Decodes a text file: UTF-16 with a byte order mark, UTF-8, otherwise Windows-1252, which banks still write.
 * @throws PageError if it has a zero byte, as spreadsheets and PDFs do.
 */
function decodeText(bytes: Uint8Array): string {
  const isUtf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  const text = isUtf16
    ? new TextDecoder(bytes[0] === 0xff ? "utf-16le" : "utf-16be").decode(bytes)
    : decodeBytes(bytes);
  if (text.includes("\0")) {
    throw new PageError(415, "expected a text file such as CSV or XML, found another kind; export it as CSV");
  }
  return text;
}

function decodeBytes(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

/**
 * Returns parameters by name. @throws PageError if there are too many, or one contains a character that no text has.
 */
export function typed(params: URLSearchParams): Typed {
  const fields: Typed = Object.create(null) as Typed;
  let count = 0;
  for (const [name, value] of params) {
    count += 1;
    if (count > MOST_FIELDS) throw new PageError(413, `expected at most ${MOST_FIELDS} fields; send it in parts`);
    if (/\0/.test(name + value)) throw new PageError(400, `the field ${JSON.stringify(name)} holds a zero byte`);
    const before = fields[name];
    const clean = value.toWellFormed();
    fields[name] = before === undefined ? clean : [...(Array.isArray(before) ? before : [before]), clean];
  }
  return fields;
}
