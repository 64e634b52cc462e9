import { createHash } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Sql, Transaction } from "../db/client.ts";
import { countRows, endLine, headerLine, sequenceLine, tableEndLines, tableLine, type BackupHeader } from "./format.ts";
import type { FinishedBackup } from "./finished-store.ts";
import {
  atOneMoment,
  describeDatabase,
  holdTables,
  listForeign,
  listSequences,
  listTables,
  readRows,
} from "./store.ts";

/** Most of a backup is hashes, which no effort makes smaller: beyond the first level time is all that grows. */
const GZIP_LEVEL = 1;

/** Called with the table, the number of rows written and about how many there are. */
export type BackupProgress = (table: string, done: number, of: number) => void;

/**
 * Writes everything of ours that a database holds into a file, as it is at one moment; readers and writers continue
 * meanwhile. Memory is bounded for any size.
 *
 * The file appears under its name when it is whole and on disk, and never before: until then it ends in `.partial`. It may
 * be read by its owner alone, since it holds password hashes, second factors and addresses.
 * @returns what is written down of it, and the tables and sequences that are not ours (`leftOut`).
 * @throws the signal's reason if it is aborted, and errors of the database or the disk; no file is left behind.
 */
export async function writeBackup(
  sql: Sql,
  to: string,
  { version, signal, progress }: { version: string; signal: AbortSignal; progress: BackupProgress },
): Promise<FinishedBackup & { leftOut: string[] }> {
  const partial = `${to}.${process.pid}.partial`;
  const file = await open(partial, "wx", 0o600);
  try {
    const measure = new Measure();
    const summary = await atOneMoment(sql, async (tx) => {
      const leftOut = await listForeign(tx);
      const tables = await listTables(tx, leftOut);
      await holdTables(tx, tables);
      const header = { version, ...(await describeDatabase(tx)) };
      const written = { snapshotAt: header.snapshot_at, rows: 0, leftOut };
      const parts = writeParts(tx, { header, tables, progress }, written);
      await pipeline(parts, createGzip({ level: GZIP_LEVEL }), measure, file.createWriteStream({ flush: true }), {
        signal,
      });
      return written;
    });
    await rename(partial, to);
    await syncFolder(dirname(to));
    return { ...summary, file: to, bytes: measure.bytes, sha256: measure.hash.digest("hex") };
  } catch (error) {
    await file.close();
    await rm(partial, { force: true });
    signal.throwIfAborted(); // a pipeline reports only that it was aborted, without the reason
    throw error;
  }
}

async function* writeParts(
  tx: Transaction,
  given: { header: BackupHeader; tables: Awaited<ReturnType<typeof listTables>>; progress: BackupProgress },
  written: { rows: number; leftOut: readonly string[] },
): AsyncGenerator<Buffer> {
  const { header, tables, progress } = given;
  const hash = createHash("sha256");
  const hashed = (part: string | Buffer) => {
    const bytes = Buffer.from(part);
    hash.update(bytes);
    return bytes;
  };
  yield hashed(headerLine(header));
  for (const table of tables) {
    yield hashed(tableLine(table));
    let rows = 0;
    for await (const chunk of (await readRows(tx, table)) as AsyncIterable<Buffer>) {
      rows += countRows(chunk);
      progress(table.name, written.rows + rows, Math.max(header.rows_expected, written.rows + rows));
      yield hashed(chunk);
    }
    yield hashed(tableEndLines(rows));
    written.rows += rows;
  }
  yield hashed("\n");
  for (const sequence of await listSequences(tx, written.leftOut)) yield hashed(sequenceLine(sequence));
  yield Buffer.from(endLine({ rows: written.rows, sha256: hash.digest("hex") }));
}

/** Lets bytes through and knows how many there were, and their hash. */
class Measure extends Transform {
  bytes = 0;
  readonly hash = createHash("sha256");
  override _transform(chunk: Buffer, _: BufferEncoding, done: (error: null, chunk: Buffer) => void): void {
    this.bytes += chunk.length;
    this.hash.update(chunk);
    done(null, chunk);
  }
}

/** A new name is in its folder, which has to reach the disk, too. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
