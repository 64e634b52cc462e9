import type { Transaction } from "../../db/client.ts";
import type { AccuracyStatement } from "./statements.ts";

/** A statement that the rows contradict, and the first part in which they do. */
export interface ContradictedStatement {
  logId: number;
  index: number;
  part: string;
  stated: string;
  /** Null if there is no such row. */
  found: string | null;
}

/** The first statement about a table that its rows contradict, in all logs; null if there is none. */
export async function findContradictedTable(
  tx: Transaction,
  table: { id: number; name: string },
): Promise<ContradictedStatement | null> {
  const [first] = await tx<ContradictedStatement[]>`
    select e.log_id as "logId", e.index::float8 as index, c.part, c.stated, c.found
    from (
      select
        log_id, index, table_id, forecast_seq, s, (s ->> 'round_seq')::bigint as round_seq,
        lag((s ->> 'round_seq')::bigint, 1, 0::bigint) over statements as last_seq,
        lag((s ->> 'on_time_rounds')::bigint, 1, 0::bigint) over statements as last_on_time
      from log_entries
      cross join lateral (select entry::jsonb as s) j
      where table_id = ${table.id}
        and forecast_seq is not null
      window statements as (partition by log_id order by index)
    ) e
    left join rounds r on r.table_id = e.table_id and r.seq = e.round_seq
    left join forecast_sets f
      on f.table_id = e.table_id and f.cutoff_seq = cutoff_of_forecast(e.table_id, e.forecast_seq)
    cross join lateral (
      values
        (1, 'table', s ->> 'table', ${table.name}),
        (2, 'history_hash', s ->> 'history_hash',
          case e.round_seq when 0 then repeat('0', 64) else encode(r.history_hash, 'hex') end),
        (3, 'on_time_rounds', s ->> 'on_time_rounds', (${countOnTime(tx)})::text),
        (4, 'forecast_hash', s ->> 'forecast_hash',
          case e.forecast_seq
            when 0 then repeat('0', 64)
            else encode(substr(f.hashes, (32 * (e.forecast_seq - f.first_seq) + 1)::integer, 32), 'hex')
          end),
        (5, 'score_hash', s ->> 'score_hash',
          case
            when ${isScoreHash(tx)}
            then s ->> 'score_hash'
          end),
        (6, 'revision_hash', s ->> 'revision_hash',
          case
            when s ->> 'revision_hash' = repeat('0', 64)
              or exists (
                select
                from round_revision v
                where v.table_id = e.table_id
                  and v.hash = s ->> 'revision_hash'
              )
            then s ->> 'revision_hash'
          end)
    ) as c (place, part, stated, found)
    where c.stated is distinct from c.found
    order by e.log_id, e.index, c.place
    limit 1`;
  return first ?? (await findMissingCalibration(tx, table.id));
}

/**
 * The number of on-time rounds up to the stated one: its ordinal. A late round has none, so those since the statement
 * before are counted.
 */
function countOnTime(tx: Transaction) {
  return tx`
    coalesce(
      r.ordinal,
      e.last_on_time
        + (
          select count(*)
          from rounds o
          where o.table_id = e.table_id
            and o.seq > e.last_seq
            and o.seq <= e.round_seq
            and o.ordinal is not null
        )
    )`;
}

/** Whether the stated hash of scores is that of the newest score set by the round, or of an earlier set or a revision. */
function isScoreHash(tx: Transaction) {
  return tx`
    s ->> 'score_hash' = repeat('0', 64)
      or s ->> 'score_hash' = (
        select encode(substr(o.hashes, length(o.hashes) - 31), 'hex')
        from score_sets o
        where o.table_id = e.table_id
          and o.settled_seq <= e.round_seq
        order by o.settled_seq desc
        limit 1
      )
      or exists (
        select
        from score_revisions v
        where v.table_id = e.table_id
          and v.hash = decode(s ->> 'score_hash', 'hex')
      )
      -- settled later than its round, while settling was paused
      or exists (
        select
        from score_sets o
        where o.table_id = e.table_id
          and o.settled_seq <= e.round_seq
          and substr(o.hashes, length(o.hashes) - 31) = decode(s ->> 'score_hash', 'hex')
      )`;
}

/** Whether the newest stated calibration of a table exists unchanged, or a newer one if it was thinned out. */
async function findMissingCalibration(tx: Transaction, tableId: number): Promise<ContradictedStatement | null> {
  const [missing] = await tx<ContradictedStatement[]>`
    select
      newest.log_id as "logId", newest.index::float8 as index, 'calibration_hash' as part,
      newest.s ->> 'calibration_hash' as stated, c.record_hash as found
    from (
      select e.log_id, e.index, e.entry::jsonb as s
      from log_entries e
      where e.table_id = ${tableId}
        and e.forecast_seq is not null
      order by e.log_id desc, e.index desc
      limit 1
    ) newest
    left join calibrations c on c.id = nullif(newest.s ->> 'calibration', '')::bigint
    where newest.s ->> 'calibration' <> ''
      and case
        when c.id is null then not exists (
          select
          from calibrations later
          where later.table_id = ${tableId}
            and later.id > (newest.s ->> 'calibration')::bigint
        )
        else c.record_hash <> newest.s ->> 'calibration_hash'
      end`;
  return missing ?? null;
}

/** The entries of a log about the accuracy of a table, newest first. */
export interface AccuracyPlaces {
  logId: number;
  indexes: number[];
}

/** The places of what the newest log that states the accuracy of a table states about it; null if none does. */
export async function findAccuracyPlaces(tx: Transaction, tableId: number): Promise<AccuracyPlaces | null> {
  const [places] = await tx<AccuracyPlaces[]>`
    select log_id as "logId", json_agg(index order by index desc) as indexes
    from log_entries
    where table_id = ${tableId}
      and forecast_seq is null
    group by log_id
    order by log_id desc
    limit 1`;
  return places ?? null;
}

/** A statement about accuracy with its place in the log. */
export interface PlacedAccuracy extends Pick<AccuracyStatement, "cutoff_seq" | "settled_seq" | "revision" | "rows"> {
  index: number;
}

/** Statements about accuracy at places of a log, newest first. */
export async function readAccuracyStatements(
  tx: Transaction,
  { logId, indexes }: AccuracyPlaces,
): Promise<PlacedAccuracy[]> {
  return tx<PlacedAccuracy[]>`
    select
      e.index::float8 as index, s ->> 'cutoff_seq' as cutoff_seq, s ->> 'settled_seq' as settled_seq,
      s ->> 'revision' as revision, coalesce(s -> 'rows', '[]') as rows
    from log_entries e
    cross join lateral (select e.entry::jsonb as s) j
    where e.log_id = ${logId}
      and e.index = any(${indexes}::bigint[])
    order by e.index desc`;
}

/** The names of a table's features, by model and code as `MODEL CODE`. */
export async function nameFeatures(tx: Transaction, tableId: number): Promise<Map<string, string>> {
  const rows = await tx<{ key: string; name: string }[]>`
    select a.model || ' ' || f.code as key, feature_name(f.code::smallint, p.bands) as name
    from accuracy_models a
    join palettes p on p.id = a.palette
    cross join lateral generate_series(0, 3 * jsonb_array_length(p.bands)) as f (code)
    where a.table_id = ${tableId}`;
  return new Map(rows.map(({ key, name }) => [key, name]));
}

/** The first statement about the audit log that it contradicts; null if there is none. */
export async function findContradictedAudit(tx: Transaction): Promise<ContradictedStatement | null> {
  const [first] = await tx<ContradictedStatement[]>`
    select e.log_id as "logId", e.index::float8 as index, 'hash' as part, e.s ->> 'hash' as stated, a.hash as found
    from (
      select log_id, index, entry::jsonb as s
      from log_entries
      where entry like '%"kind":"audit"%'
    ) e
    left join audit_log a on a.seq = (e.s ->> 'seq')::bigint
    where e.s ->> 'kind' = 'audit'
      and e.s ->> 'hash' is distinct from a.hash
    order by e.log_id, e.index
    limit 1`;
  return first ?? null;
}

/**
 * The first entry whose columns differ from its text, which alone is hashed: others would not be compared with the rows
 * of their table. Also one about a table that has no head, as if there were none. Null if there is none.
 */
export async function findMisfiledEntry(tx: Transaction): Promise<ContradictedStatement | null> {
  const [first] = await tx<ContradictedStatement[]>`
    select
      e.log_id as "logId", e.index::float8 as index, c.part, coalesce(c.stated, 'none') as stated,
      coalesce(c.found, 'none') as found
    from log_entries e
    cross join lateral (select e.entry::jsonb as s) j
    left join (
      select t.id, t.house_id || '/' || t.game || '/' || t.market as name
      from tables t
      join table_heads h on h.table_id = t.id
    ) filed on filed.id = e.table_id
    cross join lateral (
      values
        (1, 'table', s ->> 'table', filed.name),
        (2, 'forecast_seq', case s ->> 'kind' when 'table' then s ->> 'forecast_seq' end, e.forecast_seq::text)
    ) as c (place, part, stated, found)
    where c.stated is distinct from c.found
    order by e.log_id, e.index, c.place
    limit 1`;
  return first ?? null;
}

/** Checkpoints of a log from a size on, in order. */
export async function listCheckpoints(
  tx: Transaction,
  { logId, after, limit }: { logId: number; after: number; limit: number },
): Promise<{ size: number; note: string; cosignedSeconds: number | null }[]> {
  return tx<{ size: number; note: string; cosignedSeconds: number | null }[]>`
    select size::float8 as size, note, extract(epoch from cosigned_at)::float8 as "cosignedSeconds"
    from log_checkpoints
    where log_id = ${logId}
      and size > ${after}
    order by size
    limit ${limit}`;
}

/** The oldest forecasts that no signed checkpoint of the newest log covers, by table. */
export interface UnstatedForecasts {
  table: string;
  since: string;
  /** When the newest log was signed last; null if it was not. */
  signedAt: string | null;
  isPaused: boolean;
  /** Whether the log was signed, or other forecasts were issued, more than the grace later. */
  isSignedLater: boolean;
  isIssuedLater: boolean;
}

/**
 * Finds the oldest forecast set of all tables, or of one, that no signed statement of the newest log covers. Times are
 * compared with those of the log and of other forecasts, not with now: no process may have run since. One that has not
 * come yet, since the clock was ahead and was set back, shows no later run.
 */
export async function findUnstated(
  tx: Transaction,
  { tableId, graceMinutes }: { tableId: number | undefined; graceMinutes: number },
): Promise<UnstatedForecasts | null> {
  const [row] = await tx<UnstatedForecasts[]>`
    with signed as (
      select c.log_id, c.size, c.signed_at
      from log_checkpoints c
      where c.log_id = (select max(id) from logs)
      order by c.size desc
      limit 1
    ),
    newest as (
      select max(s.issued_at) as issued_at
      from table_heads h
      join forecast_sets s on s.table_id = h.table_id and s.cutoff_seq = h.set_seq
      where s.issued_at <= now()
    )
    select
      t.house_id || '/' || t.game || '/' || t.market as "table",
      utc_text(s.issued_at) as since,
      utc_text(signed.signed_at) as "signedAt",
      exists (select from queue_controls where queue = 'publish-log') as "isPaused",
      coalesce(s.issued_at + g.grace < signed.signed_at and signed.signed_at <= now(), false) as "isSignedLater",
      coalesce(s.issued_at + g.grace < newest.issued_at, false) as "isIssuedLater"
    from tables t
    cross join newest
    cross join (select ${graceMinutes} * interval '1 minute' as grace) g
    left join signed on true
    left join lateral (
      select (e.entry::jsonb ->> 'forecast_seq')::bigint as forecast_seq -- the text is signed, the column is not
      from log_entries e
      where e.table_id = t.id
        and e.log_id = signed.log_id
        and e.index < signed.size
        and e.forecast_seq is not null
      order by e.forecast_seq desc
      limit 1
    ) stated on true
    join forecast_sets s
      on s.table_id = t.id and s.cutoff_seq = cutoff_of_forecast(t.id, coalesce(stated.forecast_seq, 0) + 1)
    ${tableId === undefined ? tx`` : tx`where t.id = ${tableId}`}
    order by s.issued_at, t.id
    limit 1`;
  return row ?? null;
}
