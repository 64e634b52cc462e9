import type { Queryable } from "../../db/client.ts";
import { SILENT_SECONDS } from "./manual-run-store.ts";
import type { ReplayOrder } from "../backtest/range-store.ts";

/** A manual run as listed. */
export interface ListedRun {
  id: string;
  tableId: number;
  table: string;
  model: string;
  thresholds: number[] | null;
  status: "queued" | "running" | "done" | "failed" | "cancelled";
  /** Who executes it: the requesting process, or any worker. */
  runner: "cli" | "worker";
  fromRoundId: string | null;
  toRoundId: string | null;
  /** See {@link ReplayOrder}. */
  order: ReplayOrder;
  /** Numbers of round ids if the order is `round`. */
  fromSeq: bigint;
  toSeq: bigint;
  /** The last reported seq; null before its first attempt. */
  atSeq: bigint | null;
  /** Number of attempts. */
  turns: number;
  requestedAt: string;
  heartbeatAt: string | null;
  finishedAt: string | null;
  /** Running, but without a heartbeat for so long that its process is considered dead. */
  isSilent: boolean;
  /** Cancelled, but still running. */
  isStopping: boolean;
  /** Rounds per second in the current attempt; null if none are done. */
  perSecond: number | null;
  outFile: string | null;
  askedBy: string | null;
  askedWhy: string | null;
  parent: string | null;
  /** Why it ended without a result. */
  reason: string | null;
  calibrationId: string | null;
  /** Rounds that its calibration has replayed; null without a calibration. */
  replayed: bigint | null;
  /** The first of the runs that were requested together; null if it was requested alone. */
  batch: string | null;
  note: string | null;
  tags: string[];
}

/** Tables of one batch of runs. */
export const MOST_OF_BATCH = 50;

/** Filter of a list of runs. */
export interface RunFilter {
  tableIds: readonly number[] | null;
  status: ListedRun["status"] | null;
  tag: string | null;
}

/** Manual runs, newest first. */
export async function listRuns(
  sql: Queryable,
  filter: RunFilter,
  { limit, offset }: { limit: number; offset: number },
): Promise<ListedRun[]> {
  const rows = await sql<Stored[]>`
    select ${columnsOf(sql)}
    from calibration_runs r
    join tables t on t.id = r.table_id
    where ${matching(sql, filter)}
    order by r.id desc
    limit ${limit}
    offset ${offset}`;
  return rows.map(shown);
}

/** Number of manual runs that match. */
export async function countRuns(sql: Queryable, filter: RunFilter): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::integer as n
    from calibration_runs r
    where ${matching(sql, filter)}`;
  return row?.n ?? 0;
}

/** The manual run with an id; null if there is none. */
export async function findRun(sql: Queryable, id: string): Promise<ListedRun | null> {
  const [row] = await sql<Stored[]>`
    select ${columnsOf(sql)}
    from calibration_runs r
    join tables t on t.id = r.table_id
    where r.id = ${id}
      and r.kind = 'manual'`;
  return row === undefined ? null : shown(row);
}

/** The runs of a batch in the order of its tables; none if there is no such batch. */
export async function listRunsOfBatch(sql: Queryable, batch: string): Promise<ListedRun[]> {
  const rows = await sql<Stored[]>`
    select ${columnsOf(sql)}
    from calibration_runs r
    join tables t on t.id = r.table_id
    where r.batch_id = ${batch}
    order by r.id
    limit ${MOST_OF_BATCH}`;
  return rows.map(shown);
}

/** Runs that repeat this one, oldest first. */
export async function listChildRuns(sql: Queryable, id: string): Promise<{ id: string; status: string }[]> {
  return sql<{ id: string; status: string }[]>`
    select id::text as id, status
    from calibration_runs
    where parent_run_id = ${id}
    order by calibration_runs.id
    limit 100`;
}

/** The manual run that created a calibration; null if none did. */
export async function findRunOf(sql: Queryable, calibrationId: string): Promise<ListedRun | null> {
  const [row] = await sql<Stored[]>`
    select ${columnsOf(sql)}
    from calibration_runs r
    join tables t on t.id = r.table_id
    where r.calibration_id = ${calibrationId}
      and r.kind = 'manual'
    limit 1`;
  return row === undefined ? null : shown(row);
}

/** The manual runs that created these calibrations, by calibration; others have none. */
export async function findLabels(sql: Queryable, calibrationIds: readonly string[]): Promise<Map<string, RunLabels>> {
  const rows = await sql<(RunLabels & { calibration: string })[]>`
    select calibration_id::text as calibration, id::text as run, note, tags
    from calibration_runs
    where calibration_id = any(${[...calibrationIds]}::bigint[])
      and kind = 'manual'`;
  return new Map(rows.map(({ calibration, ...labels }) => [calibration, labels]));
}

/** What staff wrote about a run. */
export interface RunLabels {
  run: string;
  note: string | null;
  tags: string[];
}

/** The tags of manual runs, the most used first. */
export async function listTags(sql: Queryable): Promise<string[]> {
  const rows = await sql<{ tag: string }[]>`
    select tag
    from calibration_runs, unnest(tags) tag
    where tags <> '{}'
    group by tag
    order by count(*) desc, tag
    limit 100`;
  return rows.map(({ tag }) => tag);
}

type Stored = Omit<ListedRun, "thresholds"> & { thresholds: string[] | null };

function shown(row: Stored): ListedRun {
  return { ...row, thresholds: row.thresholds?.map(Number) ?? null };
}

function matching(sql: Queryable, { tableIds, status, tag }: RunFilter) {
  return sql`
    r.kind = 'manual'
      ${tableIds === null ? sql`` : sql`and r.table_id = any(${[...tableIds]}::integer[])`}
      ${status === null ? sql`` : sql`and r.status = ${status}`}
      ${tag === null ? sql`` : sql`and r.tags <> '{}' and r.tags @> array[${tag}]::text[]`}`;
}

function columnsOf(sql: Queryable) {
  return sql`
    r.id::text as id,
    r.table_id as "tableId",
    t.house_id || '/' || t.game || '/' || t.market as "table",
    r.model,
    r.thresholds::text[] as thresholds,
    r.status,
    r.runner,
    case
      when r.seen_seq is null then (select round_id from rounds where table_id = r.table_id and seq = r.from_seq)
      else r.from_seq::text
    end as "fromRoundId",
    case
      when r.seen_seq is null then (select round_id from rounds where table_id = r.table_id and seq = r.to_seq)
      else r.to_seq::text
    end as "toRoundId",
    case when r.seen_seq is null then 'taken' else 'round' end as "order",
    r.from_seq as "fromSeq",
    r.to_seq as "toSeq",
    r.at_seq as "atSeq",
    r.epoch as turns,
    utc_text(r.requested_at) as "requestedAt",
    utc_text(r.heartbeat_at) as "heartbeatAt",
    utc_text(r.finished_at) as "finishedAt",
    r.status = 'running' and r.heartbeat_at < clock_timestamp() - ${SILENT_SECONDS} * interval '1 second' as "isSilent",
    r.status = 'running' and r.cancel_asked_at is not null as "isStopping",
    case when r.at_seq > r.attempt_from_seq and r.heartbeat_at > r.attempt_started_at then
      (r.at_seq - r.attempt_from_seq) / extract(epoch from r.heartbeat_at - r.attempt_started_at)::float8
    end as "perSecond",
    r.out_file as "outFile",
    r.asked_by as "askedBy",
    r.asked_why as "askedWhy",
    r.parent_run_id::text as parent,
    r.reason,
    r.calibration_id::text as "calibrationId",
    (select rounds from calibrations where id = r.calibration_id) as replayed,
    r.batch_id::text as batch,
    r.note,
    r.tags`;
}
