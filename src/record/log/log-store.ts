import { LRUCache } from "lru-cache";
import type { Queryable, Sql, Transaction } from "../../db/client.ts";
import type { AuditStatement, TableStatement } from "./statements.ts";
import type { ReadTile, Tile } from "./tree.ts";

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

/** A statement with the version of the head that it was made from. */
export interface PendingStatement {
  tableId: number;
  version: bigint;
  statement: TableStatement;
  /** Whether it differs from the newest statement about the table. */
  isNew: boolean;
}

/**
 * Tables whose head changed since the newest statement about them, at most `limit`. A head that its newest round or forecast
 * contradicts is damaged and is left out until it is repaired: what is stated cannot be taken back.
 */
export async function listPendingStatements(sql: Queryable, logId: number, limit: number): Promise<PendingStatement[]> {
  return sql<PendingStatement[]>`
    select
      p.table_id as "tableId", p.version, p.statement, p.statement is distinct from p.last as "isNew"
    from (
      select
        h.table_id,
        h.version,
        jsonb_build_object(
          'kind', 'table',
          'table', t.house_id || '/' || t.game || '/' || t.market,
          'round_seq', h.last_seq::text,
          'history_hash', encode(h.history_hash, 'hex'),
          'forecast_seq', h.forecast_seq::text,
          'forecast_hash', encode(h.forecast_hash, 'hex'),
          'score_hash', encode(h.score_hash, 'hex'),
          'revision_hash', t.revision_hash,
          'calibration', coalesce(c.id::text, ''),
          'calibration_hash', coalesce(c.record_hash, '')
        ) as statement,
        l.statement as last
      from table_heads h
      join tables t on t.id = h.table_id
      left join log_heads l on l.log_id = ${logId} and l.table_id = h.table_id
      left join lateral (
        select id, record_hash
        from calibrations
        where table_id = h.table_id
        order by id desc
        limit 1
      ) c on true
      where l.version is distinct from h.version
        and (h.last_seq > 0 or h.forecast_seq > 0)
        and (
          h.last_seq = 0
          or exists (
            select
            from rounds r
            where r.table_id = h.table_id
              and r.seq = h.last_seq
              and r.history_hash = h.history_hash
          )
        )
        and (
          h.forecast_seq = 0
          or exists (
            select
            from forecast_sets f
            where f.table_id = h.table_id
              and f.cutoff_seq = h.set_seq
              and f.first_seq + cardinality(f.features) - 1 = h.forecast_seq
              and substr(f.hashes, length(f.hashes) - 31) = h.forecast_hash
          )
        )
      order by h.changed_at, h.table_id
      limit ${limit}
    ) p`;
}

/** The next entry of the audit log that is not in the log; null if there is none. */
export async function findPendingAudit(sql: Queryable, { auditSeq }: Log): Promise<AuditStatement | null> {
  const [head] = await sql<{ seq: string; hash: string }[]>`
    select seq::text, hash
    from audit_head
    where seq > ${auditSeq}`;
  return head === undefined ? null : { kind: "audit", ...head };
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

/** Stores when accuracy was stated last. */
export async function noteAccuracyHour(tx: Transaction, logId: number): Promise<void> {
  await tx`
    update logs
    set accuracy_hour = date_trunc('hour', now(), 'UTC')
    where id = ${logId}`;
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

/** Stores the versions of the heads from which the newest statements were made. */
export async function noteHeads(tx: Transaction, logId: number, heads: readonly PendingStatement[]): Promise<void> {
  await tx`
    insert into log_heads (log_id, table_id, version, statement)
    select ${logId}, table_id, version, statement::jsonb
    from unnest(
      ${heads.map(({ tableId }) => tableId)}::integer[],
      ${heads.map(({ version }) => version)}::bigint[],
      ${heads.map(({ statement }) => JSON.stringify(statement))}::text[]
    ) as h (table_id, version, statement)
    on conflict (log_id, table_id) do update
    set version = excluded.version, statement = excluded.statement`;
}

/** Stores tiles that are new or longer. */
export async function saveTiles(tx: Transaction, logId: number, tiles: readonly Tile[]): Promise<void> {
  await tx`
    insert into log_tiles (log_id, level, n, hashes)
    select ${logId}, level, n, decode(hashes, 'hex')
    from unnest(
      ${tiles.map(({ level }) => level)}::smallint[],
      ${tiles.map(({ n }) => n)}::bigint[],
      ${tiles.map(({ hashes }) => hashes.toString("hex"))}::text[]
    ) as t (level, n, hashes)
    on conflict (log_id, level, n) do update
    set hashes = excluded.hashes`;
}

/** The last tile of each level that has any. */
export async function listEdge(sql: Queryable, logId: number): Promise<Tile[]> {
  return sql<Tile[]>`
    with recursive edge as (
      select 0 as level, newest.n, newest.hashes
      from (select n, hashes from log_tiles where log_id = ${logId} and level = 0 order by n desc limit 1) newest
      union all
      select edge.level + 1, above.n, above.hashes
      from edge
      cross join lateral (
        select n, hashes
        from log_tiles
        where log_id = ${logId}
          and level = edge.level + 1
        order by n desc
        limit 1
      ) above
    )
    select level, n::float8 as n, hashes
    from edge`;
}

/** A tile's hashes so far; null if there is none. */
export async function findTile(sql: Queryable, logId: number, level: number, n: number): Promise<Buffer | null> {
  const [tile] = await sql<{ hashes: Buffer }[]>`
    select hashes
    from log_tiles
    where log_id = ${logId}
      and level = ${level}
      and n = ${n}`;
  return tile?.hashes ?? null;
}

/** 8 MB of full tiles; a path from the root of a log to an entry has at most seven. */
const TILES_KEPT = 1_000;

/** Reads the tiles of a log and keeps those read last. */
export function tileReader(sql: Queryable, logId: number): ReadTile {
  const tiles = new LRUCache<string, Promise<Buffer | null>>({ max: TILES_KEPT });
  return async (level, n) => {
    const key = `${level}/${n}`;
    const reading = tiles.get(key) ?? findTile(sql, logId, level, n);
    tiles.set(key, reading);
    const hashes = await reading;
    if (hashes === null) throw new Error(`expected tile ${key} of log ${logId}, found none: run \`roundhouse verify\``);
    return hashes;
  };
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

/** Stores a checkpoint, or cosignatures that were missing from it. `cosignedAt` is in seconds since 1970. */
export async function saveCheckpoint(
  sql: Sql,
  logId: number,
  { size, note, cosignedAt }: { size: number; note: string; cosignedAt: number | null },
): Promise<void> {
  await sql`
    insert into log_checkpoints (log_id, size, note, cosigned_at)
    values (${logId}, ${size}, ${note}, to_timestamp(${cosignedAt}::float8))
    on conflict (log_id, size) do update
    set note = excluded.note, cosigned_at = least(log_checkpoints.cosigned_at, excluded.cosigned_at)`;
}

/** What the published accuracy of a table covers. */
export interface AccuracyMark {
  tableId: number;
  table: string;
  cutoff_seq: string;
  settled_seq: string;
  revision: string;
  score_revision_hash: string;
}

/** The marks of tables after an id, if no accuracy was stated in this UTC hour; else none. */
export async function listAccuracyMarks(
  tx: Transaction,
  { logId, after, limit }: { logId: number; after: number; limit: number },
): Promise<AccuracyMark[]> {
  return tx<AccuracyMark[]>`
    select
      m.table_id as "tableId",
      t.house_id || '/' || t.game || '/' || t.market as "table",
      m.set_seq::text as cutoff_seq,
      m.settled_seq::text as settled_seq,
      m.revision::text as revision,
      coalesce(encode(v.hash, 'hex'), repeat('0', 64)) as score_revision_hash
    from logs l
    join accuracy_marks m on m.table_id > ${after}
    join tables t on t.id = m.table_id
    left join score_revisions v on v.table_id = m.table_id and v.revision = m.revision
    where l.id = ${logId}
      and l.accuracy_hour < date_trunc('hour', now(), 'UTC')
    order by m.table_id
    limit ${limit}`;
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
