import { createGunzip } from "node:zlib";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import { codeOf } from "../../errors.ts";

/** One line of a text file, numbered from 1, without its line end. */
export interface Line {
  line: number;
  text: string;
}

/** No valid line is as long; without the limit, a file without line ends would fill memory. */
const LONGEST_LINE = 1_000_000;

/**
 * Reads the lines of a UTF-8 file, or of a gzip of one (detected by its first bytes), one batch per read. Line ends are
 * \n, \r\n or \r; a byte order mark is dropped. Memory is bounded by the longest line, whatever the file's size.
 * @throws Error with the problem and its remedy: not UTF-8, UTF-16, an Excel workbook, damaged gzip, a line past a million
 * characters.
 */
export async function* readLines(bytes: AsyncIterable<Buffer>): AsyncGenerator<Line[]> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  let line = 0;
  const take = (text: string, last: boolean): Line[] => {
    if (text.includes("\0")) throw notUtf8(line + 1, "it has NUL bytes, as UTF-16 has");
    const whole = rest + text;
    // A \r at the end may be the first half of \r\n.
    const held = !last && whole.endsWith("\r") ? 1 : 0;
    const parts = whole.slice(0, whole.length - held).split(/\r\n|\n|\r/);
    rest = (last ? "" : (parts.pop() ?? "")) + (held === 1 ? "\r" : "");
    const tooLong = [...parts, rest].findIndex((part) => part.length > LONGEST_LINE);
    if (tooLong >= 0) {
      throw new Error(`line ${line + 1 + tooLong} is longer than ${LONGEST_LINE} characters; this is no CSV of rounds`);
    }
    return parts.map((part) => ({ line: ++line, text: part }));
  };
  const decode = (chunk?: Buffer): string => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch {
      // the lenient decoder puts this mark where the strict one failed
      const upTo = new TextDecoder().decode(chunk).split("\u{fffd}")[0] ?? "";
      throw notUtf8(line + (rest + upTo).split(/\r\n|\n|\r/).length, "a byte does not fit");
    }
  };
  for await (const chunk of unpack(bytes)) yield take(decode(chunk), false);
  const lines = take(decode(), true);
  // After the last line end there is no line.
  yield lines.at(-1)?.text === "" ? lines.slice(0, -1) : lines;
}

/** First bytes of .xlsx, which is a zip archive, and of .xls. */
const WORKBOOKS = new Set(["504b0304", "504b0506", "d0cf11e0"]);

async function* unpack(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const iterator = bytes[Symbol.asyncIterator]();
  let start: Buffer = Buffer.alloc(0);
  while (start.length < 4) {
    const next = await iterator.next();
    if (next.done === true) break;
    start = Buffer.concat([start, next.value]);
  }
  const whole = (async function* () {
    yield start;
    yield* { [Symbol.asyncIterator]: () => iterator };
  })();
  const mark = start.subarray(0, 2).toString("hex");
  if (WORKBOOKS.has(start.toString("hex", 0, 4))) {
    throw new Error("it is an Excel workbook or another archive, despite its name: save it as CSV UTF-8");
  }
  if (mark === "fffe" || mark === "feff") throw notUtf8(1, "it begins with the mark of UTF-16");
  if (mark !== "1f8b") return yield* whole;
  const gunzip = createGunzip();
  const done = pipeline(Readable.from(whole), gunzip);
  done.catch(() => undefined); // the same error comes out of gunzip; a reader that stops early is none
  try {
    yield* gunzip;
  } catch (error) {
    if (!codeOf(error).startsWith("Z_")) throw error;
    throw new Error("the file is a damaged gzip: pack it again", { cause: error });
  }
}

function notUtf8(line: number, why: string): Error {
  return new Error(`line ${line} is not UTF-8 (${why}): save the file as UTF-8 and try again`);
}
