import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { z } from "zod";
import { reasonOf, UsageError } from "../../errors.ts";
import type { FileOrder } from "../../import/order.ts";
import type { DateOrder } from "./times.ts";
import type { DecimalMark } from "./values.ts";
import { zoneName } from "./zone.ts";

/** A column: its name, or its position counted from 1. */
export type ColumnRef = string | number;

/** The columns of a round's fields; null for fields that are not configured, which have their default names or are missing. */
export interface Columns {
  round_id: ColumnRef | null;
  multiplier: ColumnRef | null;
  /** Several columns are joined with a space, such as a date and a time. */
  occurred_at: ColumnRef[] | null;
  hash: ColumnRef | null;
}

/** How a file is read. */
export interface FileFormat {
  format: "auto" | "csv" | "jsonl";
  delimiter: "auto" | "," | ";" | "\t";
  header: boolean;
  columns: Columns;
  /** The id of the oldest row, from which rows are numbered; "" for the default; null if the file has ids. */
  rowNumbers: string | null;
  decimal: DecimalMark;
  scale: number;
  /** Spellings of an instant crash, in addition to those that the table declares. */
  instant: (string | number)[];
  zone: string | null;
  dates: DateOrder;
  order: FileOrder | "auto";
}

/** The options of the command line; they have precedence over the mapping file. */
export interface FormatFlags {
  map?: string;
  roundId?: string;
  multiplier?: string;
  occurredAt?: string;
  hash?: string;
  rowNumbers?: string | true;
  format?: FileFormat["format"];
  delimiter?: FileFormat["delimiter"];
  header: boolean;
  decimal?: DecimalMark;
  scale?: number;
  zone?: string;
  dates?: DateOrder;
  order?: FileOrder | "auto";
}

const column = z.union([z.string().trim().min(1).max(200), z.int().min(1).max(1000)], {
  error: "expected the name of a column, or its place counted from 1",
});
const delimiters = { auto: "auto", ",": ",", ";": ";", tab: "\t", "\t": "\t" } as const;
const schema = z
  .strictObject({
    format: z.enum(["auto", "csv", "jsonl"]),
    delimiter: z.enum(["auto", ",", ";", "tab", "\t"], { error: 'expected auto, ",", ";" or tab' }),
    header: z.boolean(),
    columns: z
      .strictObject({
        round_id: column,
        multiplier: column,
        occurred_at: z.union([column, z.array(column).min(1).max(4)]),
        hash: column,
      })
      .partial(),
    row_numbers: z.union([z.boolean(), z.string().max(64)]),
    decimal: z.enum(["auto", ".", ","], { error: 'expected auto, "." or ","' }),
    scale: z.number().positive().max(1),
    instant: z.array(z.union([z.string().max(32), z.number()])).max(10),
    zone: z.string().refine(isZone, { error: "expected a time zone such as Europe/Berlin" }),
    dates: z.enum(["auto", "month_first", "day_first"]),
    order: z.enum(["auto", "newest_first", "newest_last"]),
  })
  .partial();
type Mapping = z.infer<typeof schema>;

/** The format of a file without options and mapping file. */
export const PLAIN_FORMAT: FileFormat = {
  format: "auto",
  delimiter: "auto",
  header: true,
  columns: { round_id: null, multiplier: null, occurred_at: null, hash: null },
  rowNumbers: null,
  decimal: "auto",
  scale: 1,
  instant: [],
  zone: null,
  dates: "auto",
  order: "auto",
};

/**
 * How a file is read: the flags first, then the mapping file, then the defaults.
 * @throws UsageError that lists everything that is wrong.
 */
export async function readFormat(flags: FormatFlags): Promise<FileFormat> {
  const mapping = flags.map === undefined ? {} : await readMapping(flags.map);
  const rowNumbers = flags.rowNumbers ?? mapping.row_numbers ?? false;
  const { columns = {} } = mapping;
  const times = flags.occurredAt ?? columns.occurred_at ?? null;
  const format: FileFormat = {
    format: flags.format ?? mapping.format ?? PLAIN_FORMAT.format,
    delimiter: flags.delimiter ?? delimiters[mapping.delimiter ?? "auto"],
    header: flags.header && (mapping.header ?? PLAIN_FORMAT.header),
    columns: {
      round_id: flags.roundId ?? columns.round_id ?? null,
      multiplier: flags.multiplier ?? columns.multiplier ?? null,
      occurred_at: times === null || Array.isArray(times) ? times : [times],
      hash: flags.hash ?? columns.hash ?? null,
    },
    rowNumbers: rowNumbers === false ? null : rowNumbers === true ? "" : rowNumbers,
    decimal: flags.decimal ?? mapping.decimal ?? PLAIN_FORMAT.decimal,
    scale: flags.scale ?? mapping.scale ?? PLAIN_FORMAT.scale,
    instant: mapping.instant ?? [],
    zone: flags.zone ?? (mapping.zone === undefined ? null : zoneName(mapping.zone)),
    dates: flags.dates ?? mapping.dates ?? PLAIN_FORMAT.dates,
    order: flags.order ?? mapping.order ?? PLAIN_FORMAT.order,
  };
  const problems = contradictionsOf(format);
  if (problems.length > 0) throw new UsageError("the file cannot be read with these options", problems);
  return format;
}

async function readMapping(file: string): Promise<Mapping> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new UsageError(`--map: ${file} cannot be read: ${reasonOf(error)}`);
  }
  let value: unknown;
  try {
    value = parse(text) ?? {};
  } catch (error) {
    throw new UsageError(`--map: ${file} is not YAML: ${reasonOf(error)}`);
  }
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  throw new UsageError(`--map: ${file} is not usable`, read.error.issues.flatMap(problemsOf));
}

function problemsOf(issue: z.core.$ZodIssue): { path: string; message: string }[] {
  if (issue.code !== "unrecognized_keys") return [{ path: issue.path.join(".") || "the file", message: issue.message }];
  const known = issue.path.length === 0 ? Object.keys(schema.shape) : Object.keys(PLAIN_FORMAT.columns);
  return issue.keys.map((key) => ({
    path: [...issue.path, key].join("."),
    message: `there is no such setting; there are ${known.join(", ")}`,
  }));
}

function contradictionsOf({ rowNumbers, columns, header, format }: FileFormat): { path: string; message: string }[] {
  const problems: { path: string; message: string }[] = [];
  if (rowNumbers !== null && columns.round_id !== null) {
    problems.push({
      path: "row_numbers",
      message: "a file whose column has ids needs no row numbers; give one of both",
    });
  }
  if (header || format === "jsonl") return problems;
  if (rowNumbers === null && columns.round_id === null) {
    problems.push({
      path: "round_id",
      message: "a file without a header needs the place of this column, counted from 1",
    });
  }
  for (const [path, given] of Object.entries({ ...columns, multiplier: columns.multiplier ?? "nothing" })) {
    for (const one of given === null ? [] : [given].flat()) {
      if (/^[1-9]\d*$/.test(String(one))) continue;
      const message = `a file without a header needs the place of this column, counted from 1; found ${one}`;
      problems.push({ path, message });
    }
  }
  return problems;
}

function isZone(name: string): boolean {
  try {
    zoneName(name);
    return true;
  } catch {
    return false; // the schema's message already states what was expected
  }
}
