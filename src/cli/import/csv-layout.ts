import { parse } from "csv-parse/sync";
import type { Line } from "./csv-lines.ts";
import type { ColumnRef, FileFormat } from "./format.ts";
import type { FileRow } from "../../import/row.ts";

/** What the lines of a CSV file are read with. */
export type CsvFormat = Pick<FileFormat, "delimiter" | "header" | "columns" | "row_numbers">;

/** The columns of a round's fields in the lines of a file. */
export interface Layout {
  delimiter: string;
  /** The number of fields of a line. */
  count: number;
  /** Indexes of each field's columns, from 0; several are joined. */
  places: { field: Exclude<keyof FileRow, "line">; at: number[] }[];
  /** Names of unused columns. */
  ignored: string[];
}

const FIELDS = { round_id: "roundId", multiplier: "multiplier", occurred_at: "occurredAt", hash: "hash" } as const;
type FieldName = keyof typeof FIELDS;
const EXPECTED = "expected a header such as round_id,multiplier,occurred_at,hash (the last two may be missing)";

/**
 * Finds the columns of a file by its first line. Without a given delimiter, the one of comma, semicolon and tab is used
 * with which all columns are found.
 * @throws Error that names the missing or duplicate columns.
 */
export function layoutOf(first: Line, format: CsvFormat): Layout {
  const candidates = format.delimiter === "auto" ? ["\t", ";", ","] : [format.delimiter];
  const tried = candidates
    .map((delimiter) => tryLayout(first, format, delimiter))
    .toSorted((a, b) => Number(b.ok) - Number(a.ok) || b.count - a.count);
  const [best] = tried;
  if (best?.ok === true) return best.layout;
  throw new Error(`line ${first.line}: ${best?.reason ?? EXPECTED}`);
}

/** Splits one record into trimmed fields; null if its quotes are wrong. Records without quotes are split 100 times faster. */
export function fieldsOf(record: string, delimiter: string): string[] | null {
  if (!record.includes('"')) return record.split(delimiter).map((field) => field.trim());
  if (hasOpenQuote(record)) return null;
  try {
    // for each further record the parser makes an error object of some kilobytes
    const [fields] = parse(record, { trim: true, relax_column_count: true, delimiter, to: 1 });
    return fields?.map((field) => field.trim()) ?? null;
  } catch {
    return null; // the reason given for the line is clearer than the parser's message
  }
}

/** Whether the last quote of a text opens a field that the text does not close. */
export function hasOpenQuote(text: string): boolean {
  return text.split('"').length % 2 === 0;
}

type Tried = { count: number } & ({ ok: true; layout: Layout } | { ok: false; reason: string });

function tryLayout(first: Line, { header, columns, row_numbers: rowNumbers }: CsvFormat, delimiter: string): Tried {
  const fields = fieldsOf(first.text, delimiter) ?? [];
  const names = header ? fields.map((name) => name.toLowerCase()) : [];
  const count = fields.length;
  const foundText = `found ${JSON.stringify(first.text.slice(0, 200))}`;
  const layout: Layout = { delimiter, count, places: [], ignored: [] };
  for (const name of ["round_id", "multiplier", "occurred_at", "hash"] as const) {
    if (name === "round_id" && rowNumbers !== null) continue;
    const given = columns[name];
    const isNeeded = given !== null || name === "round_id" || name === "multiplier";
    const places: number[] = [];
    for (const ref of given === null ? [name] : [given].flat()) {
      const found = placesOf(ref, names, count);
      const [at] = found;
      if (found.length > 1)
        return { ok: false, count, reason: `${expectedOf(name, ref, given)}, ${foundText}: ${ref} is there twice` };
      if (at !== undefined) places.push(at);
      else if (isNeeded)
        return { ok: false, count, reason: missing(name, ref, { given, header, names, text: first.text, foundText }) };
    }
    if (places.length > 0) layout.places.push({ field: FIELDS[name], at: places });
  }
  const used = new Set(layout.places.flatMap(({ at }) => at));
  layout.ignored = names.filter((_, at) => !used.has(at));
  return { ok: true, count, layout };
}

/** A name has precedence over an index, so that a column called 2 can be named. */
function placesOf(ref: ColumnRef, names: readonly string[], count: number): number[] {
  const wanted = String(ref).trim().toLowerCase();
  const named = names.flatMap((name, at) => (name === wanted && typeof ref === "string" ? [at] : []));
  if (named.length > 0 || !/^[1-9]\d{0,3}$/.test(wanted)) return named;
  return Number(wanted) <= count ? [Number(wanted) - 1] : [];
}

function expectedOf(name: FieldName, ref: ColumnRef, given: unknown): string {
  return given === null ? EXPECTED : `expected a column ${JSON.stringify(ref)} for ${name}`;
}

function missing(
  name: FieldName,
  ref: ColumnRef,
  about: { given: unknown; header: boolean; names: readonly string[]; text: string; foundText: string },
): string {
  const { given, header, names, text, foundText } = about;
  const expected = expectedOf(name, ref, given);
  if (!header) return `${expected}, ${foundText}, which has fewer`;
  if (names.length === 1 && text.includes("|"))
    return `${expected} with commas, semicolons or tabs between, ${foundText}`;
  const advice = /^"?\d/.test(text.trim())
    ? "; where the file has no header, say so, and give its columns by their places"
    : name === "round_id" && given === null
      ? `; name the column that has it${names.includes("id") ? ": --round-id id" : " with --round-id"}, or number the rows of a file without ids`
      : "";
  return `${expected}, ${foundText}: ${ref} is missing${advice}`;
}
