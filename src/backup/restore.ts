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

/**
 * Writes what a backup holds into a database that has the schema of the backup and nothing in it: all of it or, where
 * anything goes wrong, nothing. Foreign keys are checked of every row. Account ids and deposit addresses that may have
 * been given out after the backup are skipped. Returns how many addresses after the newest one with a deposit a wallet
 * must search to find the next one.
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
): Promise<number> {
  return allOrNothing(sql, async (tx) => {
    const tables = await listTables(tx);
    await emptyTables(tx, tables, header.days);
    const left = new Map(tables.map(({ name, columns }) => [name, columns]));
    let done = 0;
    let copying: { table: BackupTable; stream: Writable } | null = null;
    try {
      for await (const part of readBackup(file)) {
        signal.throwIfAborted();
        if (part.kind === "table") {
          refuseStrange(part.table, left.get(part.table.name));
          left.delete(part.table.name);
          copying = { table: part.table, stream: await beginRows(tx, part.table) };
        }
        if (part.kind === "rows" && copying !== null) await write(copying.stream, part.bytes);
        if (part.kind === "table_end" && copying !== null) {
          copying.stream.end();
          await finished(copying.stream);
          done += part.rows;
          progress(copying.table.name, done, rows);
          copying = null;
        }
        if (part.kind === "sequence") await setSequence(tx, part.sequence);
      }
    } catch (error) {
      copying?.stream.destroy(new Error("the restore ended")); // ROLLBACK is refused during a COPY
      throw error;
    }
    if (left.size > 0) throw new Error(`the schema has tables that the backup lacks: ${[...left.keys()].join(", ")}`);
    const walletGap = await skipLostIdentifiers(tx);
    await enableTriggers(tx);
    return walletGap;
  });
}

/** Refuses unknown names: they become part of a statement, and the file can be forged. */
function refuseStrange({ name, columns }: BackupTable, ours: readonly string[] | undefined): void {
  if (ours === undefined) throw new Error(`the backup has the table ${name}, the schema has not or had it before`);
  const strange = columns.find((column) => !ours.includes(column));
  if (strange !== undefined) throw new Error(`the backup has the column ${strange} of ${name}, the schema has not`);
}

async function beginRows(tx: Transaction, table: BackupTable): Promise<Writable> {
  const stream = await writeRows(tx, table);
  // what goes wrong is thrown where it is written or waited for next
  stream.on("error", () => undefined);
  return stream;
}

async function write(stream: Writable, bytes: Buffer): Promise<void> {
  if (stream.errored !== null) throw stream.errored;
  if (!stream.write(bytes)) await once(stream, "drain");
}
