import type { Queryable, Transaction } from "../../db/client.ts";
import type { Log } from "./log-store.ts";
import type { AuditStatement, TableStatement } from "./statements.ts";

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
          'on_time_rounds', h.last_ordinal::text,
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
        and ${isOfItsRows(sql)}
      order by h.changed_at, h.table_id
      limit ${limit}
    ) p`;
}

/** Whether the newest round, the newest on-time round and the newest forecast are those of a head `h`. */
function isOfItsRows(sql: Queryable) {
  return sql`
    (
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
      (h.last_ordinal = 0 and h.newest_seq is null)
      or exists (
        select
        from rounds r
        where r.table_id = h.table_id
          and r.seq = h.newest_seq
          and r.ordinal = h.last_ordinal
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
    )`;
}

/** The next entry of the audit log that is not in the log; null if there is none. */
export async function findPendingAudit(sql: Queryable, { auditSeq }: Log): Promise<AuditStatement | null> {
  const [head] = await sql<{ seq: string; hash: string }[]>`
    select seq::text, hash
    from audit_head
    where seq > ${auditSeq}`;
  return head === undefined ? null : { kind: "audit", ...head };
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

/** What the published accuracy of a table covers. */
export interface AccuracyMark {
  tableId: number;
  version: bigint;
  /** The version up to which the log states the accuracy; null if it does not. */
  statedVersion: bigint | null;
  /** Not all rows of it were stated in this UTC day. */
  isWholeDue: boolean;
  table: string;
  cutoff_seq: string;
  settled_seq: string;
  revision: string;
  score_revision_hash: string;
}

/**
 * The marks of tables after an id whose accuracy changed since it was stated, or was not stated as a whole in this UTC day;
 * none if accuracy was stated in this UTC hour.
 */
export async function listAccuracyMarks(
  tx: Transaction,
  { logId, after, limit }: { logId: number; after: number; limit: number },
): Promise<AccuracyMark[]> {
  return tx<AccuracyMark[]>`
    select
      m.table_id as "tableId",
      m.version,
      s.accuracy_version as "statedVersion",
      coalesce(s.accuracy_day < ${today(tx)}, true) as "isWholeDue",
      t.house_id || '/' || t.game || '/' || t.market as "table",
      m.set_seq::text as cutoff_seq,
      m.settled_seq::text as settled_seq,
      m.revision::text as revision,
      coalesce(encode(v.hash, 'hex'), repeat('0', 64)) as score_revision_hash
    from logs l
    join accuracy_marks m on m.table_id > ${after}
    join tables t on t.id = m.table_id
    left join log_heads s on s.log_id = l.id and s.table_id = m.table_id
    left join score_revisions v on v.table_id = m.table_id and v.revision = m.revision
    where l.id = ${logId}
      and l.accuracy_hour < date_trunc('hour', now(), 'UTC')
      and (s.accuracy_version is distinct from m.version or s.accuracy_day < ${today(tx)})
    order by m.table_id
    limit ${limit}`;
}

function today(tx: Transaction) {
  return tx`(now() at time zone 'UTC')::date`;
}

/** Up to which version the accuracy of a table is stated, and whether all of its rows were. */
export interface StatedAccuracy {
  tableId: number;
  version: bigint;
  isWhole: boolean;
}

/** Stores up to which versions accuracy is stated, in which hour, and the day of what was stated as a whole. */
export async function noteAccuracy(tx: Transaction, logId: number, stated: readonly StatedAccuracy[]): Promise<void> {
  await tx`
    update log_heads h
    set
      accuracy_version = x.version,
      accuracy_day = case when x.is_whole then ${today(tx)} else h.accuracy_day end
    from unnest(
      ${stated.map(({ tableId }) => tableId)}::integer[],
      ${stated.map(({ version }) => version)}::bigint[],
      ${stated.map(({ isWhole }) => isWhole)}::boolean[]
    ) as x (table_id, version, is_whole)
    where h.log_id = ${logId}
      and h.table_id = x.table_id`;
  await tx`
    update logs
    set accuracy_hour = date_trunc('hour', now(), 'UTC')
    where id = ${logId}`;
}
