import { parse } from "csv-parse/sync";
import type { Line } from "./csv-lines.ts";

/** A row of the file, its fields as they came, trimmed; null where the column is missing or the field empty. */
export interface CsvRow {
  line: number;
  roundId: string | null;
  multiplier: string | null;
  occurredAt: string | null;
  hash: string | null;
}

/** A row, or a line that is none, with the reason. */
export type CsvItem = { ok: true; row: CsvRow } | { ok: false; line: number; reason: string };

/** Reads the lines after the header. */
export interface CsvReader {
  /** Columns that are not ours, by name. */
  ignored: string[];
  read(lines: Line[]): CsvItem[];
  /** What is left when the file ends. */
  end(): CsvItem[];
}

const COLUMNS = { round_id: "roundId", multiplier: "multiplier", occurred_at: "occurredAt", hash: "hash" } as const;
const EXPECTED = "expected a header such as round_id,multiplier,occurred_at,hash (the last two may be missing)";

/** A quoted field may go over lines; one that is not closed by then costs its own line only, never what follows. */
const MOST_LINES_IN_A_RECORD = 20;

/**
 * The reader for a file with this header: `round_id` and `multiplier`, maybe `occurred_at` and `hash`, in any order, other columns
 * between them. Empty lines are skipped. A line with a stray quote or with too few or too many fields is refused by itself.
 * @throws Error where the header is not ours, saying what was expected and what came.
 */
export function csvReader(header: Line): CsvReader {
  const names = fieldsOf(header.text)?.map((name) => name.toLowerCase()) ?? [];
  const came = `came ${JSON.stringify(header.text.slice(0, 200))}`;
  const foreign = /[;\t|]/.exec(header.text)?.[0];
  if (names.length === 1 && foreign !== undefined) {
    throw new Error(`line ${header.line}: ${EXPECTED} with commas between, ${came}`);
  }
  for (const needed of ["round_id", "multiplier"]) {
    if (!names.includes(needed)) throw new Error(`line ${header.line}: ${EXPECTED}, ${came}: ${needed} is missing`);
  }
  const twice = names.find((name, at) => Object.hasOwn(COLUMNS, name) && names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`line ${header.line}: ${EXPECTED}, ${came}: ${twice} is there twice`);
  const places = Object.entries(COLUMNS).map(([name, field]) => ({ field, at: names.indexOf(name) }));

  /** Lines whose last quote is not closed yet. */
  let open: Line[] = [];
  const refuse = (line: number, reason: string): CsvItem => ({ ok: false, line, reason });

  const toItem = (line: number, fields: string[]): CsvItem => {
    const extra = fields.slice(names.length);
    if (fields.length < names.length || extra.some((field) => field !== "")) {
      return refuse(line, `expected ${names.length} fields as in the header, came ${fields.length}`);
    }
    const row: CsvRow = { line, roundId: null, multiplier: null, occurredAt: null, hash: null };
    for (const { field, at } of places) row[field] = fields[at] || null;
    return { ok: true, row };
  };
  /** The first open line is refused; those after it are read anew, since its quote has nothing to do with them. */
  const giveUp = (): CsvItem[] => {
    const [first, ...others] = open;
    open = [];
    if (first === undefined) return [];
    return [refuse(first.line, "a quote is opened or closed in the wrong place"), ...others.flatMap(readLine)];
  };
  const readLine = ({ line, text }: Line): CsvItem[] => {
    if (open.length === 0) {
      if (text.trim() === "") return [];
      const fields = fieldsOf(text);
      if (fields !== null) return [toItem(line, fields)];
      if (isBalanced(text)) return [refuse(line, "a quote is opened or closed in the wrong place")];
      open = [{ line, text }];
      return [];
    }
    open.push({ line, text });
    if (isBalanced(text)) return open.length < MOST_LINES_IN_A_RECORD ? [] : giveUp();
    const fields = fieldsOf(open.map((one) => one.text).join("\n"));
    const first = open[0];
    if (fields === null || fields.length !== names.length || first === undefined) return giveUp();
    open = [];
    return [toItem(first.line, fields)];
  };

  return {
    ignored: names.filter((name) => !Object.hasOwn(COLUMNS, name)),
    read: (lines) => lines.flatMap(readLine),
    end: () => {
      const left: CsvItem[] = [];
      while (open.length > 0) left.push(...giveUp());
      return left;
    },
  };
}

/** The fields of one record, trimmed; null where its quotes are wrong. Most have none, and are split a hundred times faster. */
function fieldsOf(record: string): string[] | null {
  if (!record.includes('"')) return record.split(",").map((field) => field.trim());
  try {
    const [fields] = parse(record, { trim: true, relax_column_count: true });
    return fields?.map((field) => field.trim()) ?? null;
  } catch {
    return null; // the parser's words are about its own state; the reason given for the line says it better
  }
}

function isBalanced(text: string): boolean {
  return (text.split('"').length - 1) % 2 === 0;
}
