import { once } from "node:events";
import type { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import type { Sql, Transaction } from "../db/client.ts";
import type { BackupHeader, BackupTable } from "./format.ts";
import { readBackup } from "./read.ts";
import {
  allOrNothing,
  emptyTables,
  enableTriggers,
  listTables,
  setSequence,
  skipLostIdentifiers,
  writeRows,
} from "./store.ts";

/** Called with the table, the number of rows written and the number of all rows. */
export type RestoreProgress = (table: string, done: number, of: number) => void;

/** What a restore found. */
export interface Restored {
  /** How many addresses after the newest one with a deposit a wallet must search to find the next one. */
  walletGap: number;
  /** Columns and sequences of the backup that the schema has not. */
  leftOut: string[];
}

/**
 * Writes what a backup holds into a database that has the schema of the backup and nothing in it: all of it or, where
 * anything goes wrong, nothing. Foreign keys are checked of every row. Columns and sequences that were added to the
 * database of the backup are left out. Account ids and deposit addresses that may have been given out after the backup are
 * skipped.
 * @throws the signal's reason where it is aborted; Error where the file is damaged or does not fit the schema.
 */
export async function restoreRows(
  sql: Sql,
  file: string,
  {
    header,
    rows,
    signal,
    progress,
  }: { header: BackupHeader; rows: number; signal: AbortSignal; progress: RestoreProgress },
): Promise<Restored> {
  return allOrNothing(sql, async (tx) => {
    const tables = await listTables(tx);
    await emptyTables(tx, tables, header.days);
    const left = new Map(tables.map(({ name, columns }) => [name, columns]));
    const leftOut: string[] = [];
    let done = 0;
    let copying: Copying | null = null;
    try {
      for await (const part of readBackup(file)) {
        signal.throwIfAborted();
        if (part.kind === "table") {
          const strange = findStrange(part.table, left.get(part.table.name));
          leftOut.push(...strange.map((column) => `${column} of ${part.table.name}`));
          left.delete(part.table.name);
          copying = await beginRows(tx, part.table, strange);
        }
        if (part.kind === "rows" && copying !== null) await write(copying, part.bytes);
        if (part.kind === "table_end" && copying !== null) {
          copying.stream.end();
          await finished(copying.stream);
          done += part.rows;
          progress(copying.name, done, rows);
          copying = null;
        }
        if (part.kind === "sequence" && !(await setSequence(tx, part.sequence))) leftOut.push(part.sequence.name);
      }
    } catch (error) {
      copying?.stream.destroy(new Error("the restore ended")); // ROLLBACK is refused during a COPY
      throw error;
    }
    if (left.size > 0) throw new Error(`the schema has tables that the backup lacks: ${[...left.keys()].join(", ")}`);
    const walletGap = await skipLostIdentifiers(tx);
    await enableTriggers(tx);
    return { walletGap, leftOut };
  });
}

/**
 * The columns of a table that the schema has not. Only names of the schema become part of a statement: the file can be forged.
 * @throws Error if the schema has not the table, or a column that the backup lacks.
 */
function findStrange({ name, columns }: BackupTable, ours: readonly string[] | undefined): string[] {
  if (ours === undefined) throw new Error(`the backup has the table ${name}, the schema has not or had it before`);
  const lacking = ours.find((column) => !columns.includes(column));
  if (lacking !== undefined) throw new Error(`the schema has the column ${lacking} of ${name}, the backup has not`);
  return columns.filter((column) => !ours.includes(column));
}

/** The rows of a table on their way into the database. */
interface Copying {
  name: string;
  stream: Writable;
  fields: Fields | null;
}

async function beginRows(
  tx: Transaction,
  { name, columns }: BackupTable,
  strange: readonly string[],
): Promise<Copying> {
  const kept = columns.filter((column) => !strange.includes(column));
  const stream = await writeRows(tx, { name, columns: kept });
  // what goes wrong is thrown where it is written or waited for next
  stream.on("error", () => undefined);
  const fields = strange.length === 0 ? null : new Fields(kept.map((column) => columns.indexOf(column)));
  return { name, stream, fields };
}

async function write({ stream, fields }: Copying, bytes: Buffer): Promise<void> {
  if (stream.errored !== null) throw stream.errored;
  if (!stream.write(fields?.keep(bytes) ?? bytes)) await once(stream, "drain");
}

/** Keeps some fields of rows in the text format of COPY, in which tabs and line breaks of a value are escaped. */
class Fields {
  readonly #kept: readonly number[];
  #rest = "";

  constructor(kept: readonly number[]) {
    this.#kept = kept;
  }

  /** Returns the rows that end in this piece. */
  keep(bytes: Buffer): Buffer {
    const lines = `${this.#rest}${bytes.toString("latin1")}`.split("\n"); // each byte is one character
    this.#rest = lines.pop() ?? "";
    const rows = lines.map((line) => {
      const fields = line.split("\t");
      return `${this.#kept.map((at) => fields[at]).join("\t")}\n`;
    });
    return Buffer.from(rows.join(""), "latin1");
  }
}
