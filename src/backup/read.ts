import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { finished, pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { reasonOf } from "../errors.ts";
import { type BackupEnd, type BackupHeader, type BackupPart, countRows, readLine } from "./format.ts";

const ROWS_END = Buffer.from("\\.\n");
const LAST_ROW_AND_END = Buffer.from("\n\\.\n");
/** The header lists all migrations; a longer line is not from a backup. */
const LONGEST_LINE = 1024 * 1024;

/**
 * Reads a backup part by part, in bounded memory. The parts are unverified until the last one, which has the number of
 * rows and the hash of the file; the iteration ends normally only if they match.
 * @throws Error if the file is damaged, truncated or not a backup.
 */
export async function* readBackup(file: string): AsyncGenerator<BackupPart> {
  const hash = createHash("sha256");
  let rows = 0;
  let rowsOfTable = 0;
  let isOver = false;
  try {
    for await (const { bytes, part } of readParts(file)) {
      if (isOver) throw new Error("something follows its end");
      if (part?.kind === "end") {
        checkEnd(part.end, { rows, sha256: hash.digest("hex") });
        isOver = true;
      } else hash.update(bytes);
      if (part?.kind === "table") rowsOfTable = 0;
      if (part?.kind === "rows") rowsOfTable += countRows(part.bytes);
      if (part?.kind === "table_end") {
        if (part.rows !== rowsOfTable) throw new Error(`expected ${part.rows} rows of a table, found ${rowsOfTable}`);
        rows += rowsOfTable;
      }
      if (part !== null) yield part;
    }
    if (!isOver) throw new Error("it ends before its last line");
  } catch (error) {
    if (error instanceof NotRead) throw error;
    throw new NotRead(file, error);
  }
}

/**
 * Checks a whole backup without restoring it; returns its header.
 * @throws Error as {@link readBackup} does.
 */
export async function checkBackup(
  file: string,
  progress: (done: number, of: number) => void,
): Promise<{ header: BackupHeader; end: BackupEnd }> {
  let header: BackupHeader | null = null;
  let end: BackupEnd | null = null;
  let rows = 0;
  for await (const part of readBackup(file)) {
    if (part.kind === "header") header = part.header;
    if (part.kind === "end") end = part.end;
    if (part.kind === "table_end") {
      rows += part.rows;
      progress(rows, Math.max(rows, header?.rows_expected ?? 0));
    }
  }
  if (header === null || end === null) throw new NotRead(file, new Error("its first line is none of a backup"));
  return { header, end };
}

class NotRead extends Error {
  constructor(file: string, cause: unknown) {
    super(`${file} cannot be restored, it is damaged, cut off or no backup: ${reasonOf(cause)}; take another backup`, {
      cause,
    });
  }
}

function checkEnd(expected: BackupEnd, found: BackupEnd): void {
  if (expected.sha256 !== found.sha256) {
    throw new Error(`expected the SHA-256 ${expected.sha256} of what it holds, found ${found.sha256}`);
  }
  if (expected.rows !== found.rows) throw new Error(`expected ${expected.rows} rows, found ${found.rows}`);
}

/** The parts with the bytes that each takes in the file. */
async function* readParts(file: string): AsyncGenerator<{ bytes: Buffer; part: BackupPart | null }> {
  let rest: Buffer = Buffer.alloc(0);
  let isInRows = false;
  let isAtFirstRow = false;
  for await (const chunk of unzipped(file)) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (;;) {
      if (!isInRows) {
        const at = rest.indexOf(10);
        if (at === -1 && rest.length > LONGEST_LINE) throw new Error("it has a line that is too long");
        if (at === -1) break;
        const bytes = rest.subarray(0, at + 1);
        rest = rest.subarray(at + 1);
        const part = readLine(bytes.subarray(0, -1).toString("utf8"));
        isInRows = isAtFirstRow = part?.kind === "table";
        yield { bytes, part };
        continue;
      }
      if (isAtFirstRow && rest.length < ROWS_END.length) break;
      if (isAtFirstRow && rest.subarray(0, ROWS_END.length).equals(ROWS_END)) {
        yield { bytes: ROWS_END, part: null };
        rest = rest.subarray(ROWS_END.length);
        isInRows = false;
        continue;
      }
      isAtFirstRow = false;
      const at = rest.indexOf(LAST_ROW_AND_END);
      // what might be the beginning of the end of the rows is kept until more is there
      const upTo = at === -1 ? rest.length - (LAST_ROW_AND_END.length - 1) : at + 1;
      if (upTo > 0) yield rowsOf(rest.subarray(0, upTo));
      rest = rest.subarray(Math.max(upTo, 0));
      if (at === -1) break;
      yield { bytes: ROWS_END, part: null };
      rest = rest.subarray(ROWS_END.length);
      isInRows = false;
    }
  }
  if (rest.length > 0 || isInRows) throw new Error("it ends in the middle");
}

function rowsOf(bytes: Buffer): { bytes: Buffer; part: BackupPart } {
  return { bytes, part: { kind: "rows", bytes } };
}

function unzipped(file: string): AsyncIterable<Buffer> {
  const unzip = createGunzip();
  // the reader gets every failure: of the file, of the compression, of an early end
  pipeline(createReadStream(file), unzip, () => undefined);
  finished(unzip, () => undefined);
  return unzip;
}
