import { type CsvFormat, fieldsOf, hasOpenQuote, layoutOf } from "./csv-layout.ts";
import type { Line } from "./csv-lines.ts";
import { PLAIN_FORMAT } from "./format.ts";
import type { FileRow } from "../../import/row.ts";
import type { FileItem, FileReader } from "./item.ts";

/** A quoted field may span this many lines; if it is not closed by then, only its first line is refused. */
const MOST_LINES_IN_A_RECORD = 20;

/**
 * The reader for a file with this first line: `round_id` and `multiplier`, optionally `occurred_at` and `hash`, in any
 * order among other columns, or the columns that the format names. Without a header the line is a row, and must be read
 * with the others. Empty lines are skipped. A line with a stray quote or a wrong number of fields is refused alone.
 * @throws Error with the expected and the found header if they differ.
 */
export function csvReader(start: Line, format: CsvFormat = PLAIN_FORMAT): FileReader {
  const { delimiter, count, places, ignored } = layoutOf(start, format);
  /** Lines whose last quote is not closed yet. */
  let open: Line[] = [];
  const refuse = (line: number, reason: string): FileItem => ({ ok: false, line, reason });

  const toItem = (line: number, fields: string[]): FileItem => {
    const extra = fields.slice(count);
    if (fields.length < count || extra.some((field) => field !== "")) {
      return refuse(line, `expected ${count} fields as in the header, found ${fields.length}`);
    }
    const row: FileRow = { line, roundId: null, multiplier: null, occurredAt: null, hash: null };
    for (const { field, at } of places) row[field] = textAt(fields, at);
    return { ok: true, row };
  };
  /** Refuses the first open line and parses those after it again, without its quote. */
  const giveUp = (): FileItem[] => {
    const [first, ...others] = open;
    open = [];
    if (first === undefined) return [];
    return [refuse(first.line, "a quote is opened or closed in the wrong place"), ...others.flatMap(readLine)];
  };
  const readLine = ({ line, text }: Line): FileItem[] => {
    if (open.length === 0) {
      if (text.trim() === "") return [];
      const fields = fieldsOf(text, delimiter);
      if (fields !== null) return [toItem(line, fields)];
      if (!hasOpenQuote(text)) return [refuse(line, "a quote is opened or closed in the wrong place")];
      open = [{ line, text }];
      return [];
    }
    open.push({ line, text });
    if (!hasOpenQuote(text)) return open.length < MOST_LINES_IN_A_RECORD ? [] : giveUp();
    const fields = fieldsOf(open.map((one) => one.text).join("\n"), delimiter);
    const first = open[0];
    if (fields === null || fields.length !== count || first === undefined) return giveUp();
    open = [];
    return [toItem(first.line, fields)];
  };

  return {
    ignored,
    read: (lines) => lines.flatMap(readLine),
    end: () => {
      const left: FileItem[] = [];
      while (open.length > 0) left.push(...giveUp());
      return left;
    },
  };
}

function textAt(fields: readonly string[], at: readonly number[]): string | null {
  if (at.length === 1) return fields[at[0] ?? 0] || null;
  const texts = at.map((one) => fields[one] ?? "").filter((text) => text !== "");
  return texts.length === 0 ? null : texts.join(" ");
}
