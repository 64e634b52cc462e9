/**
 * What a backup looks like: a script that psql can run, too, compressed with gzip.
 *
 * It begins with a line about itself, then comes each table as `copy … from stdin` with its rows in the text format of
 * PostgreSQL, then the sequences, and at last a line with the number of rows and the SHA-256 of everything before it: a
 * file without it was cut off, and one that differs in a byte does not fit it.
 */
import { z } from "zod";

const MAGIC = "-- roundhouse backup 1 ";
const END = "-- end ";

const headerSchema = z.object({
  version: z.string(),
  snapshot_at: z.string(),
  /** The migrations of the schema that the rows are of, in order. */
  migrations: z.array(z.string()).min(1),
  /** The days of tables that are made of days; null if there are none. */
  days: z.object({ from: z.iso.date(), count: z.number().int().positive() }).nullable(),
  rows_expected: z.number().int().nonnegative(),
});
/** The first line of a backup; `rows_expected` is an estimate, for showing progress. */
export type BackupHeader = z.infer<typeof headerSchema>;

const endSchema = z.object({ rows: z.number().int().nonnegative(), sha256: z.string() });
/** The last line of a backup. */
export type BackupEnd = z.infer<typeof endSchema>;

/** A table of a backup; the name is with its schema, both quoted where they have to be. */
export interface BackupTable {
  name: string;
  columns: string[];
}

/** The position of a sequence. */
export interface SequencePlace {
  name: string;
  value: string;
  isUsed: boolean;
}

/** What a backup consists of, in its order. */
export type BackupPart =
  | { kind: "header"; header: BackupHeader }
  | { kind: "table"; table: BackupTable }
  /** Whole or parts of lines of the table before. */
  | { kind: "rows"; bytes: Buffer }
  | { kind: "table_end"; rows: number }
  | { kind: "sequence"; sequence: SequencePlace }
  | { kind: "end"; end: BackupEnd };

/** The first line. */
export function headerLine(header: BackupHeader): string {
  return `${MAGIC}${JSON.stringify(header)}\n`;
}

/** The lines before the rows of a table. */
export function tableLine({ name, columns }: BackupTable): string {
  return `\ncopy ${name} (${columns.join(", ")}) from stdin;\n`;
}

/** The lines after them. */
export function tableEndLines(rows: number): string {
  return `\\.\n-- rows: ${rows}\n`;
}

/** The position from which a sequence continues. */
export function sequenceLine({ name, value, isUsed }: SequencePlace): string {
  return `select setval('${name.replaceAll("'", "''")}', ${value}, ${isUsed});\n`;
}

/** The last line. */
export function endLine(end: BackupEnd): string {
  return `${END}${JSON.stringify(end)}\n`;
}

/** Parses a line outside of rows; null if it is empty. @throws Error if it is not a line of a backup. */
export function readLine(line: string): BackupPart | null {
  if (line === "") return null;
  if (line.startsWith(MAGIC))
    return { kind: "header", header: headerSchema.parse(JSON.parse(line.slice(MAGIC.length))) };
  if (line.startsWith(END)) return { kind: "end", end: endSchema.parse(JSON.parse(line.slice(END.length))) };
  const table = /^copy ([^(]+) \((.+)\) from stdin;$/.exec(line);
  if (table?.[1] !== undefined && table[2] !== undefined) {
    return { kind: "table", table: { name: table[1], columns: columnsOf(table[2]) } };
  }
  const rows = /^-- rows: (\d+)$/.exec(line);
  if (rows !== null) return { kind: "table_end", rows: Number(rows[1]) };
  const sequence = /^select setval\('(.+)', (\d+), (true|false)\);$/.exec(line);
  if (sequence?.[1] !== undefined && sequence[2] !== undefined) {
    const name = sequence[1].replaceAll("''", "'");
    return { kind: "sequence", sequence: { name, value: sequence[2], isUsed: sequence[3] === "true" } };
  }
  throw new Error(`expected a line of a backup, got ${JSON.stringify(line.slice(0, 80))}`);
}

/** The names of a list of columns; a quoted one may contain a comma. */
function columnsOf(list: string): string[] {
  return list.match(/(?:"(?:[^"]|"")*"|[^",])+(?=, |$)/g)?.map((name) => name.trimStart()) ?? [];
}

/** How many rows a piece of the text format of COPY ends: a line break within a value is written otherwise. */
export function countRows(bytes: Uint8Array): number {
  let rows = 0;
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) rows += 1;
  return rows;
}
