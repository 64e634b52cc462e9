import type { Queryable, Sql, Transaction } from "../../db/client.ts";

/** A log as declared. */
export interface Log {
  id: number;
  origin: string;
  /** 32 bytes of Ed25519. */
  publicKey: Buffer;
  size: number;
  /** The newest entry of the audit log that is in the log. */
  auditSeq: bigint;
  /** Why another log was declared, and by whom; null for the first. */
  reason: string | null;
  declaredBy: string | null;
  declaredAt: string;
}

/** The logs of this instance, the newest first; only that one grows. */
export async function listLogs(sql: Queryable): Promise<Log[]> {
  return sql<Log[]>`
    select
      id, origin, public_key as "publicKey", size::float8 as size, audit_seq as "auditSeq", reason,
      declared_by as "declaredBy", utc_text(declared_at) as "declaredAt"
    from logs
    order by id desc`;
}

/**
 * Creates a log: the first one without a reason, each later one by a decision of the operator. Returns its id, or null
 * if another process created the same log meanwhile.
 */
export async function createLog(
  tx: Transaction,
  log: { id: number; origin: string; publicKey: Buffer; by: string | null; reason: string | null },
): Promise<number | null> {
  const [created] = await tx<{ id: number }[]>`
    insert into logs (id, origin, public_key, declared_by, reason)
    values (${log.id}, ${log.origin}, ${log.publicKey}, ${log.by}, ${log.reason})
    on conflict (id) do nothing
    returning id`;
  return created?.id ?? null;
}

/** An entry to append. */
export interface NewEntry {
  tableId: number | null;
  forecastSeq: bigint | null;
  entry: string;
}

/**
 * Advances a log from the size that was read to a larger one. Returns false if another process advanced it since:
 * nothing was written.
 */
export async function moveSize(
  tx: Transaction,
  { id, size, to, auditSeq }: { id: number; size: number; to: number; auditSeq: bigint },
): Promise<boolean> {
  const moved = await tx`
    update logs
    set size = ${to}, audit_seq = greatest(audit_seq, ${auditSeq})
    where id = ${id}
      and size = ${size}
    returning id`;
  return moved.length === 1;
}

/**
 * Locks the folder of the logs until the transaction ends: one process at a time replaces the checkpoint in it. All logs
 * have one folder, so this is the row of the first.
 */
export async function lockFolder(tx: Transaction): Promise<void> {
  await tx`
    select
    from logs
    where id = (select min(id) from logs)
    for no key update`;
}

/** Appends entries from an index on. */
export async function insertEntries(
  tx: Transaction,
  logId: number,
  from: number,
  entries: readonly NewEntry[],
): Promise<void> {
  await tx`
    insert into log_entries (log_id, index, table_id, forecast_seq, entry)
    select ${logId}, ${from} + e.place - 1, e.table_id, e.forecast_seq, e.entry
    from unnest(
      ${entries.map(({ tableId }) => tableId)}::integer[],
      ${entries.map(({ forecastSeq }) => forecastSeq)}::bigint[],
      ${entries.map(({ entry }) => entry)}::text[]
    ) with ordinality as e (table_id, forecast_seq, entry, place)`;
}

/** Entries from an index on, at most `limit`, in order. */
export async function listEntries(sql: Queryable, logId: number, from: number, limit: number): Promise<string[]> {
  const rows = await sql<{ entry: string }[]>`
    select entry
    from log_entries
    where log_id = ${logId}
      and index >= ${from}
      and index < ${from + limit}
    order by index`;
  return rows.map(({ entry }) => entry);
}

/** A signed checkpoint as stored. */
export interface StoredCheckpoint {
  size: number;
  note: string;
  signedAt: string;
  cosignedAt: string | null;
}

/** The newest signed checkpoint; null before the first. */
export async function findNewestCheckpoint(sql: Queryable, logId: number): Promise<StoredCheckpoint | null> {
  const [row] = await sql<StoredCheckpoint[]>`
    select size::float8 as size, note, utc_text(signed_at) as "signedAt", utc_text(cosigned_at) as "cosignedAt"
    from log_checkpoints
    where log_id = ${logId}
    order by size desc
    limit 1`;
  return row ?? null;
}

/**
 * Stores a checkpoint, or cosignatures that were missing from it; one that has them stays. `cosignedAt` is in seconds since
 * 1970.
 */
export async function saveCheckpoint(
  sql: Sql,
  logId: number,
  { size, note, cosignedAt }: { size: number; note: string; cosignedAt: number | null },
): Promise<void> {
  await sql`
    insert into log_checkpoints (log_id, size, note, cosigned_at)
    values (${logId}, ${size}, ${note}, to_timestamp(${cosignedAt}::float8))
    on conflict (log_id, size) do update
    set note = excluded.note, cosigned_at = excluded.cosigned_at
    where log_checkpoints.cosigned_at is null`;
}

/** The statement nearest after a forecast in a log whose newest checkpoint covers it. */
export interface CoveringEntry {
  logId: number;
  index: number;
  entry: string;
  forecastSeq: bigint;
  cutoffSeq: bigint;
  size: number;
  note: string;
}

/** The nearest statement that covers a forecast, of all logs; null if there is none or no such forecast. */
export async function findCoveringEntry(
  sql: Queryable,
  { tableId, seq }: { tableId: number; seq: bigint },
): Promise<CoveringEntry | null> {
  const [row] = await sql<CoveringEntry[]>`
    select
      e.log_id as "logId", e.index::float8 as index, e.entry, e.forecast_seq as "forecastSeq",
      cutoff_of_forecast(e.table_id, ${seq}) as "cutoffSeq", c.size::float8 as size, c.note
    from log_entries e
    cross join lateral (
      select size, note
      from log_checkpoints
      where log_id = e.log_id
      order by size desc
      limit 1
    ) c
    where e.table_id = ${tableId}
      and e.forecast_seq >= ${seq}
      and e.index < c.size
      and cutoff_of_forecast(e.table_id, ${seq}) is not null
    order by e.forecast_seq, e.log_id desc, e.index
    limit 1`;
  return row ?? null;
}
