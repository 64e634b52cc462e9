import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { readLines } from "./csv-lines.ts";
import { type CsvItem, type CsvReader, csvReader, type CsvRow } from "./csv-rows.ts";

/** What reading a file found beside its rows; complete when its rows have all been taken. */
export interface FileFindings {
  /** Names of columns that are not ours. */
  ignored: string[];
  /** Lines that are no rows. */
  refused: { line: number; reason: string }[];
}

/**
 * The rows of a CSV file as the staging table takes them: lines of PostgreSQL's COPY text, many at a time. What else is found goes into
 * `findings`. `progress` hears how many bytes of how many were read.
 * @throws Error that names the file and says what is wrong: it cannot be read, is empty, has another header, is not UTF-8.
 */
export async function* stagedText(
  file: string,
  findings: FileFindings,
  progress: (done: number, of: number) => void,
): AsyncGenerator<string> {
  try {
    const { size } = await stat(file);
    let reader: CsvReader | null = null;
    for await (const lines of readLines(countBytes(file, size, progress))) {
      let rest = lines;
      if (reader === null) {
        const at = lines.findIndex(({ text }) => text.trim() !== "");
        const header = lines[at];
        if (header === undefined) continue;
        reader = csvReader(header);
        findings.ignored = reader.ignored;
        rest = lines.slice(at + 1);
      }
      yield toCopy(reader.read(rest), findings);
    }
    if (reader === null) throw new Error("it is empty; expected a header such as round_id,multiplier");
    yield toCopy(reader.end(), findings);
  } catch (error) {
    throw new Error(`${file} cannot be imported`, { cause: error });
  }
}

async function* countBytes(
  file: string,
  size: number,
  progress: (done: number, of: number) => void,
): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 18 })) {
    if (!Buffer.isBuffer(chunk)) throw new Error("expected bytes");
    yield chunk;
    bytes += chunk.length;
    progress(bytes, size);
  }
}

function toCopy(items: CsvItem[], { refused }: FileFindings): string {
  let text = "";
  for (const item of items) {
    if (item.ok) text += copyLine(item.row);
    else refused.push({ line: item.line, reason: item.reason });
  }
  return text;
}

function copyLine({ line, roundId, multiplier, occurredAt, hash }: CsvRow): string {
  return `${line}\t${field(roundId)}\t${field(multiplier)}\t${field(occurredAt)}\t${field(hash)}\n`;
}

function field(text: string | null): string {
  if (text === null) return "\\N";
  return /[\\\t\n\r]/.test(text) ? text.replaceAll(/[\\\t\n\r]/g, (mark) => ESCAPED[mark] ?? mark) : text;
}

const ESCAPED: Record<string, string> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };
