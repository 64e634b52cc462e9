import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { type Line, readLines } from "./csv-lines.ts";
import { csvReader } from "./csv-rows.ts";
import type { FileFormat } from "./format.ts";
import type { Refusals } from "../../import/refusals.ts";
import type { FileRow } from "../../import/row.ts";
import type { FileItem, FileReader } from "./item.ts";
import { jsonLinesReader } from "./jsonl.ts";

/** Everything but rows that reading a file found; complete when all rows have been read. */
export interface FileFindings {
  /** Names of unused columns. */
  ignored: string[];
  /** Lines without a row, such as empty ones. */
  refusals: Refusals;
  /** Rows, and lines that should have been rows. */
  total: number;
}

/** Gets what is read of a file. */
export interface FileWatch {
  onRow: (row: FileRow) => void;
  progress: (done: number, of: number) => void;
  signal: AbortSignal;
}

/**
 * Reads the rows of a file, in its order. If rows are numbered, their numbers replace ids. `onRow` gets each row, and
 * everything else goes into `findings`. `progress` receives the bytes read and the total.
 * @throws the signal's reason once it is aborted; Error that names the file and the problem: unreadable, empty, another
 * header, not UTF-8
 */
export async function readFileRows(
  file: string,
  format: FileFormat,
  findings: FileFindings,
  { onRow, progress, signal }: FileWatch,
): Promise<void> {
  const take = (items: FileItem[]): void => {
    for (const item of items) {
      findings.total += 1;
      if (!item.ok) {
        findings.refusals.add(item.line, item.reason);
        continue;
      }
      if (format.row_numbers !== null) item.row.roundId = String(findings.total);
      onRow(item.row);
    }
  };
  try {
    const { size } = await stat(file);
    let reader: FileReader | null = null;
    for await (const lines of readLines(countBytes(file, size, progress))) {
      signal.throwIfAborted();
      let rest = lines;
      if (reader === null) {
        const at = lines.findIndex(({ text }) => text.trim() !== "");
        const first = lines[at];
        if (first === undefined) continue;
        const isJson = isJsonLines(file, first, format);
        reader = isJson ? jsonLinesReader(format) : csvReader(first, format);
        findings.ignored = reader.ignored;
        rest = lines.slice(at + (isJson || !format.header ? 0 : 1));
      }
      take(reader.read(rest));
    }
    if (reader === null) throw new Error("it is empty; expected a header such as round_id,multiplier");
    take(reader.end());
  } catch (error) {
    signal.throwIfAborted(); // an interruption needs no name of a file
    throw new Error(`${file} cannot be imported`, { cause: error });
  }
}

/** Detects JSON lines by the option, by the file's name, or by its first characters. */
function isJsonLines(file: string, { line, text }: Line, { format }: FileFormat): boolean {
  const start = text.trimStart()[0];
  if (start === "[" && format !== "csv") {
    throw new Error(`line ${line}: it is one list of JSON; write one object per line (\`jq -c '.[]'\` does it)`);
  }
  if (start === "<") throw new Error(`line ${line}: it is a web page or XML; expected CSV or one JSON object per line`);
  if (format !== "auto") return format === "jsonl";
  return start === "{" || /\.(?:jsonl|ndjson)(?:\.gz)?$/i.test(file);
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
