import type { Queryable, Transaction } from "../db/client.ts";

/** A backup that was finished, as it is written down. */
export interface FinishedBackup {
  snapshotAt: string;
  file: string;
  bytes: number;
  sha256: string;
  rows: number;
}

/** Writes down that a backup was finished. */
export async function saveBackup(
  tx: Transaction,
  { snapshotAt, file, bytes, sha256, rows }: FinishedBackup,
): Promise<void> {
  await tx`
    insert into backups (snapshot_at, file, bytes, sha256, rows)
    values (${snapshotAt}::text::timestamptz, ${file}, ${bytes}, ${sha256}, ${rows})`;
}

/** The newest backup, and how many hours old its state is; null before the first. */
export async function findNewestBackup(sql: Queryable): Promise<(FinishedBackup & { ageHours: number }) | null> {
  const [row] = await sql<(FinishedBackup & { ageHours: number })[]>`
    select
      utc_text(snapshot_at) as "snapshotAt",
      file,
      bytes::float8 as bytes,
      sha256,
      rows::float8 as rows,
      (extract(epoch from clock_timestamp() - snapshot_at) / 3600)::float8 as "ageHours"
    from backups
    order by snapshot_at desc
    limit 1`;
  return row ?? null;
}
