import type { Queryable, Sql, Transaction } from "../../db/client.ts";
import type { Snapshot } from "../backtest/replay.ts";
import { lockHeads, touchHeads } from "../../tables/heads-store.ts";
import type { Band } from "../../forecasts/model/table-model.ts";
import { type NewCalibration, insertCalibration } from "../calibration-store.ts";

/** A table's state is replayed after this many rounds, or after this time if it learned anything. */
const ROLLING_ROUNDS = 1000;
const ROLLING_MINUTES = 15;

/** A run without a heartbeat for longer is claimed by another worker. */
export const ROLLING_SILENT_SECONDS = 60;

/** A released run is retried by its queue; when its attempts there are spent, it is queued again after this time. */
const RELEASED_MINUTES = 15;

/**
 * Requests a rolling run for every due table of a house: its snapshot is 1,000 rounds, or any round for 15 minutes, ahead
 * of its newest calibration. At most one rolling run per table is open. Returns the new runs.
 */
export async function requestRollingRuns(sql: Queryable, house: string): Promise<{ run: string }[]> {
  return sql<{ run: string }[]>`
    insert into calibration_runs (table_id, kind, model)
    select s.table_id, 'rolling', s.model
    from tables t
    join table_heads h on h.table_id = t.id
    join model_snapshots s on s.table_id = t.id and s.model = h.model
    left join lateral (${newestCalibration(sql)}) newest on true
    where t.house_id = ${house}
      and ${isDue(sql)}
    order by s.table_id
    limit 1000
    on conflict do nothing
    returning id::text as run`;
}

/** Houses with a table whose rolling run is due and not requested. */
export async function listHousesToCalibrate(sql: Queryable): Promise<{ house: string }[]> {
  return sql<{ house: string }[]>`
    select distinct t.house_id as house
    from tables t
    join table_heads h on h.table_id = t.id
    join model_snapshots s on s.table_id = t.id and s.model = h.model
    left join lateral (${newestCalibration(sql)}) newest on true
    where ${isDue(sql)}
    limit 1000`;
}

/** The newest calibration that the state `s` went through; manual runs count only if they were promoted. */
function newestCalibration(sql: Queryable) {
  return sql`
    select c.to_seq, c.created_at
    from calibrations c
    where c.table_id = s.table_id
      and c.model = s.model
      and c.kind <> 'manual'
    order by c.version desc
    limit 1`;
}

/** Whether the snapshot `s` of the table `t` is due since its `newest` calibration. */
function isDue(sql: Queryable) {
  return sql`
    s.seq > coalesce(newest.to_seq, 0)
      and (
        s.seq - coalesce(newest.to_seq, 0) >= ${ROLLING_ROUNDS}
        or coalesce(newest.created_at, t.created_at) < clock_timestamp() - ${ROLLING_MINUTES} * interval '1 minute'
      )
      and not exists (
        select
        from calibration_runs r
        where r.table_id = s.table_id
          and r.model = s.model
          and r.kind = 'rolling'
          and r.status in ('queued', 'running')
      )`;
}

/** Rolling runs of enabled tables without a worker: never claimed, released 15 minutes ago, or without a heartbeat for a minute. */
export async function listWaitingRuns(sql: Queryable): Promise<{ run: string }[]> {
  return sql<{ run: string }[]>`
    select r.id::text as run
    from calibration_runs r
    join tables t on t.id = r.table_id
    join houses h on h.id = t.house_id
    where r.kind = 'rolling'
      and t.enabled
      and h.enabled
      and r.status in ('queued', 'running')
      and (
        (r.status = 'queued' and r.reason is null)
        or r.heartbeat_at < clock_timestamp() - case r.status
          when 'queued' then ${RELEASED_MINUTES} * interval '1 minute'
          else ${ROLLING_SILENT_SECONDS} * interval '1 second'
        end
      )
    order by r.requested_at
    limit 1000`;
}

/** An attempt at a run; `epoch` is a fencing token for every write. */
export interface Attempt {
  run: string;
  epoch: number;
}

/** A claimed run: its table, and the checkpoints from which it may start. */
export interface TakenRun extends Attempt {
  tableId: number;
  table: string;
  model: string;
  bands: Band[];
  /** Declared edge of the house, null if it declares none. */
  edge: number | null;
  /** The newest records of the live state, newest first; none for a table's first run. */
  checkpoints: Snapshot[];
  /** The current live state, which the replay must reach. */
  live: { learnedSeq: bigint; stateHash: string; state: Buffer } | null;
}

/** Damaged records that a rolling run skips before it starts from the first round. */
const CHECKPOINTS = 5;

/** Claims a rolling run, or null if it is done, cancelled or worked on elsewhere. */
export async function takeRun(sql: Sql, run: string): Promise<TakenRun | null> {
  const claimed = await claim(sql, run);
  if (claimed === undefined) return null;
  const [taken] = await sql<
    (Omit<TakenRun, "epoch" | "checkpoints" | "live"> & {
      learnedSeq: bigint | null;
      liveState: Buffer | null;
      liveHash: string | null;
    })[]
  >`
    select
      r.id::text as run,
      t.id as "tableId",
      t.house_id || '/' || t.game || '/' || t.market as "table",
      r.model,
      p.bands,
      (t.settings ->> 'house_edge')::float8 as edge,
      s.seq as "learnedSeq",
      s.state as "liveState",
      encode(s.state_hash, 'hex') as "liveHash"
    from calibration_runs r
    join tables t on t.id = r.table_id
    join table_heads h on h.table_id = r.table_id
    join palettes p on p.id = h.palette
    left join model_snapshots s on s.table_id = r.table_id and s.model = r.model
    where r.id = ${run}`;
  if (taken === undefined) return null;
  const { learnedSeq, liveState, liveHash, ...rest } = taken;
  // read after the live state: a promotion in between cancels the run
  const checkpoints = await sql<Snapshot[]>`
    select
      begin_seq as "beginSeq", to_seq as "toSeq", rounds, state, state_hash as "stateHash", sums, carry,
      revision_id as "revisionId", revised_seq as "revisedSeq", seen_seq as "seenSeq", late_rounds as "lateRounds"
    from calibrations
    where table_id = ${rest.tableId}
      and model = ${rest.model}
      and kind <> 'manual'
    order by version desc
    limit ${CHECKPOINTS}`;
  return {
    ...rest,
    ...claimed,
    checkpoints,
    live:
      learnedSeq === null || liveState === null || liveHash === null
        ? null
        : { learnedSeq, state: liveState, stateHash: liveHash },
  };
}

/** Starts the next attempt at a run; undefined if it is not pending. */
async function claim(sql: Sql, run: string): Promise<{ epoch: number } | undefined> {
  const [claimed] = await sql<{ epoch: number }[]>`
    update calibration_runs
    set
      lost_attempts = lost_attempts + case status when 'running' then 1 else 0 end,
      status = 'running',
      epoch = epoch + 1,
      heartbeat_at = clock_timestamp(),
      reason = null
    where id = ${run}
      and kind = 'rolling'
      and status in ('queued', 'running')
      and (status = 'queued' or heartbeat_at < clock_timestamp() - ${ROLLING_SILENT_SECONDS} * interval '1 second')
    returning epoch`;
  return claimed;
}

/** Stores a heartbeat of a run. Returns false if another worker has claimed it or it was cancelled. */
export async function beatRun(sql: Queryable, attempt: Attempt): Promise<boolean> {
  const ours = await sql`
    update calibration_runs
    set heartbeat_at = clock_timestamp()
    where ${isOurs(sql, attempt)}
    returning id`;
  return ours.length > 0;
}

function isOurs(sql: Queryable, { run, epoch }: Attempt) {
  return sql`id = ${run} and epoch = ${epoch} and status = 'running'`;
}

/** Releases a run to the next attempt, with the reason, unless another worker has claimed it. */
export async function releaseRun(sql: Sql, attempt: Attempt, reason: string): Promise<void> {
  await sql`
    update calibration_runs
    set
      status = 'queued',
      lost_attempts = 0,
      reason = ${reason},
      heartbeat_at = clock_timestamp()
    where ${isOurs(sql, attempt)}`;
}

/** Returns the name of a run's table, and whether the run is open; null if there is no such run. */
export async function findTableOfRun(sql: Queryable, run: string): Promise<{ table: string; isOpen: boolean } | null> {
  const [found] = await sql<{ table: string; isOpen: boolean }[]>`
    select
      t.house_id || '/' || t.game || '/' || t.market as "table",
      r.status in ('queued', 'running') as "isOpen"
    from calibration_runs r
    join tables t on t.id = r.table_id
    where r.id = ${run}`;
  return found ?? null;
}

/** Ends a run that had nothing to replay, with the reason, unless another worker has claimed it. */
export async function endRun(sql: Sql, attempt: Attempt, reason: string): Promise<void> {
  await sql`
    update calibration_runs
    set
      status = 'done',
      reason = ${reason},
      finished_at = clock_timestamp()
    where ${isOurs(sql, attempt)}`;
}

/**
 * Stores a calibration of a rolling run under the table's next version and returns the version, or null if another worker
 * has claimed the run. If the replay reached the seq of the live state (`isMet` not null) the run ends; if the states are
 * equal, the calibration is shown next to the table's forecasts.
 */
export async function saveRollingCalibration(
  sql: Sql,
  attempt: Attempt,
  calibration: NewCalibration,
  isMet: boolean | null,
): Promise<number | null> {
  return sql.begin(async (tx) => {
    if (isMet === true) await lockHeads(tx, [calibration.tableId]); // before the run, as a promotion does
    if (!(await beatRun(tx, attempt))) return null;
    const { id, version } = await insertCalibration(tx, calibration);
    if (isMet !== null) await finishRun(tx, attempt.run, id);
    else await tx`update calibration_runs set lost_attempts = 0 where id = ${attempt.run}`;
    if (isMet === true) await touchHeads(tx, [calibration.tableId]); // callers see it next to the forecasts
    return version;
  });
}

/** Ends a run with its calibration. */
export async function finishRun(tx: Transaction, run: string, calibrationId: string): Promise<void> {
  await tx`
    update calibration_runs
    set
      status = 'done',
      finished_at = clock_timestamp(),
      calibration_id = ${calibrationId}
    where id = ${run}`;
}
