import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { copyField } from "../../db/copy.ts";
import { type Line, readLines } from "./csv-lines.ts";
import { csvReader } from "./csv-rows.ts";
import type { FileFormat } from "./format.ts";
import type { Refusals } from "../../import/refusals.ts";
import type { StagedRow } from "../../import/store.ts";
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

/**
 * The rows of a file as lines of PostgreSQL's COPY text for the staging table, in batches. If rows are numbered, their
 * numbers replace ids. `onRow` gets each row, and everything else goes into `findings`. `progress` receives the bytes
 * read and the total.
 * @throws Error that names the file and the problem: unreadable, empty, another header, not UTF-8.
 */
export async function* stagedText(
  file: string,
  format: FileFormat,
  findings: FileFindings,
  { onRow, progress }: { onRow: (row: StagedRow) => void; progress: (done: number, of: number) => void },
): AsyncGenerator<string> {
  const toCopy = (items: FileItem[]): string => {
    let text = "";
    for (const item of items) {
      findings.total += 1;
      if (!item.ok) {
        findings.refusals.add(item.line, item.reason);
        continue;
      }
      if (format.rowNumbers !== null) item.row.roundId = String(findings.total);
      onRow(item.row);
      text += copyLine(item.row);
    }
    return text;
  };
  try {
    const { size } = await stat(file);
    let reader: FileReader | null = null;
    for await (const lines of readLines(countBytes(file, size, progress))) {
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
      yield toCopy(reader.read(rest));
    }
    if (reader === null) throw new Error("it is empty; expected a header such as round_id,multiplier");
    yield toCopy(reader.end());
  } catch (error) {
    throw new Error(`${file} cannot be imported`, { cause: error });
  }
}

/** Detects JSON lines by the option, by the file's name, or by its first characters. */
function isJsonLines(file: string, { line, text }: Line, { format }: FileFormat): boolean {
  const start = text.trimStart()[0];
  if (start === "[" && format !== "csv") {
    throw new Error(`line ${line}: it is one list of JSON; write one object a line (\`jq -c '.[]'\` does it)`);
  }
  if (start === "<") throw new Error(`line ${line}: it is a web page or XML; expected CSV or one JSON object a line`);
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

function copyLine({ line, roundId, multiplier, occurredAt, hash }: StagedRow): string {
  return `${line}\t${copyField(roundId)}\t${copyField(multiplier)}\t${copyField(occurredAt)}\t${copyField(hash)}\n`;
}
