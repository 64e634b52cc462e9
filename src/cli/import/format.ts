import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { z } from "zod";
import { reasonOf, UsageError } from "../../errors.ts";
import { findZone } from "./zone.ts";

const expected = (text: string) => ({
  error: ({ input }: { input?: unknown }) => `expected ${text}, found ${JSON.stringify(input)}`,
});
const aColumn = expected("the name of a column, or its place counted from 1");
const aScale = expected("a number above 0, at most 1, such as 0.01");

const column = z.union(
  [z.string().trim().min(1, aColumn).max(200, aColumn), z.int().min(1, aColumn).max(1000, aColumn)],
  aColumn,
);
/** A column: its name, or its position counted from 1. */
export type ColumnRef = z.output<typeof column>;
const anyColumn = column.optional().transform((given) => given ?? null);

/** The columns of a round's fields; a field without one has its default name or is missing. */
const roundColumns = z.strictObject({
  round_id: anyColumn,
  multiplier: anyColumn,
  /** Several columns are joined with a space, such as a date and a time. */
  occurred_at: z
    .union([column, z.array(column).min(1).max(4)], aColumn)
    .optional()
    .transform((given) => (given === undefined ? null : [given].flat())),
  hash: anyColumn,
});

/** The format of a file: what a mapping file may set, and options of the command line under the same names. */
export const fileFormat = z.strictObject({
  format: z.enum(["auto", "csv", "jsonl"]).default("auto"),
  delimiter: z
    .enum(["auto", ",", ";", "tab", "\t", "\\t"], expected('auto, ",", ";" or tab'))
    .transform((mark) => (mark === "tab" || mark === "\\t" ? "\t" : mark))
    .default("auto"),
  header: z.boolean().default(true),
  columns: roundColumns.prefault({}),
  /** The id of the oldest row, from which rows are numbered; "" for the default; null if the file has ids. */
  row_numbers: z
    .union([z.boolean(), z.string()], expected("true, or the id of the oldest row"))
    .transform((first) => (first === true ? "" : first === false ? null : first))
    .default(null),
  decimal: z.enum(["auto", ".", ","], expected('auto, "." or ","')).default("auto"),
  scale: z.number(aScale).positive(aScale).max(1, aScale).default(1),
  /** Spellings of an instant crash, in addition to those that the table declares. */
  instant: z
    .array(z.union([z.string().max(32), z.number()]))
    .max(10)
    .default([]),
  zone: z
    .string()
    .refine((name) => findZone(name) !== null, expected("a time zone such as Europe/Berlin"))
    .transform(findZone)
    .default(null),
  dates: z.enum(["auto", "month_first", "day_first"]).default("auto"),
  order: z.enum(["auto", "newest_first", "newest_last"]).default("auto"),
});
/** How a file is read. */
export type FileFormat = z.output<typeof fileFormat>;

/** The format of a file without options and mapping file. */
export const PLAIN_FORMAT: FileFormat = fileFormat.parse({});

/** The options of the command line by their names; they have precedence over the mapping file. */
export interface FormatFlags {
  readonly [name: string]: unknown;
  map?: string;
  header: boolean;
}

/**
 * How a file is read: the flags first, then the mapping file, then the defaults.
 * @throws UsageError that lists everything that is wrong.
 */
export async function readFormat(flags: FormatFlags): Promise<FileFormat> {
  const mapping = flags.map === undefined ? {} : await readMapping(flags.map);
  const given = (shape: object) =>
    Object.fromEntries(
      Object.keys(shape).flatMap((name) => {
        const value = flags[name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())];
        return value === undefined ? [] : [[name, value]];
      }),
    );
  const read = fileFormat.safeParse({
    ...mapping,
    ...given(fileFormat.shape),
    columns: { ...mapping.columns, ...given(roundColumns.shape) },
    header: flags.header && mapping.header,
  });
  const problems = read.success ? contradictionsOf(read.data) : read.error.issues.flatMap(problemsOf);
  if (!read.success || problems.length > 0)
    throw new UsageError("the file cannot be read with these options", problems);
  return read.data;
}

async function readMapping(file: string): Promise<z.input<typeof fileFormat>> {
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
  const read = fileFormat.safeParse(value);
  if (read.success) return value as z.input<typeof fileFormat>;
  throw new UsageError(`--map: ${file} is not usable`, read.error.issues.flatMap(problemsOf));
}

function problemsOf(issue: z.core.$ZodIssue): { path: string; message: string }[] {
  if (issue.code !== "unrecognized_keys") return [{ path: issue.path.join(".") || "the file", message: issue.message }];
  const known = issue.path.length === 0 ? Object.keys(fileFormat.shape) : Object.keys(roundColumns.shape);
  return issue.keys.map((key) => ({
    path: [...issue.path, key].join("."),
    message: `there is no such setting; there are ${known.join(", ")}`,
  }));
}

function contradictionsOf({ row_numbers: rowNumbers, columns, header, format }: FileFormat): UsageError["problems"] {
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
