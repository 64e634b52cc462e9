import type { Queryable, Sql } from "../db/client.ts";
import type { SumsJson } from "./sums.ts";
import type { Band } from "./table-model.ts";

/** A table's state is replayed after so many rounds, or after so long where it learned anything at all. */
const ROLLING_ROUNDS = 1000;
const ROLLING_MINUTES = 15;

/** A run that was silent for longer is taken over: its worker is gone. */
const SILENT_SECONDS = 60;

/**
 * Asks for a rolling run of every table of a house that is due: it has learned 1,000 rounds, or anything at all for 15
 * minutes, since its newest calibration. At most one rolling run of a table is open. Returns the new runs.
 */
export async function requestRollingRuns(sql: Queryable, house: string): Promise<{ run: string }[]> {
  return sql<{ run: string }[]>`
    insert into calibration_runs (table_id, kind, model)
    select s.table_id, 'rolling', s.model
    from tables t
    join model_states s on s.table_id = t.id
    left join lateral (${newestCalibration(sql)}) newest on true
    where t.house_id = ${house}
      and ${isDue(sql)}
    order by s.table_id
    limit 1000
    on conflict do nothing
    returning id::text as run`;
}

/** Houses with a table whose rolling run is due and not asked for. */
export async function listHousesToCalibrate(sql: Queryable): Promise<{ house: string }[]> {
  return sql<{ house: string }[]>`
    select distinct t.house_id as house
    from tables t
    join model_states s on s.table_id = t.id
    left join lateral (${newestCalibration(sql)}) newest on true
    where ${isDue(sql)}
    limit 1000`;
}

/** The newest calibration of the state `s`. */
function newestCalibration(sql: Queryable) {
  return sql`
    select c.to_seq, c.created_at
    from calibrations c
    where c.table_id = s.table_id
      and c.model = s.model
    order by c.version desc
    limit 1`;
}

/** Has the state `s` of the table `t` learned enough, or waited long enough, since its `newest` calibration? */
function isDue(sql: Queryable) {
  return sql`
    s.learned_seq > coalesce(newest.to_seq, 0)
      and (
        s.learned_seq - coalesce(newest.to_seq, 0) >= ${ROLLING_ROUNDS}
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

/** Runs that nobody works on: queued, or silent for a minute. */
export async function listWaitingRuns(sql: Queryable): Promise<{ run: string }[]> {
  return sql<{ run: string }[]>`
    select id::text as run
    from calibration_runs
    where status in ('queued', 'running')
      and (status = 'queued' or heartbeat_at < clock_timestamp() - ${SILENT_SECONDS} * interval '1 second')
    order by requested_at
    limit 1000`;
}

/** Where a replay begins: a calibration that was kept. */
export interface Checkpoint {
  toSeq: bigint;
  /** On-time rounds from the table's first to `toSeq`. */
  rounds: bigint;
  state: Buffer;
  stateHash: string;
  sums: unknown;
}

/** A run as taken: its table, and the checkpoint it goes on from. */
export interface TakenRun {
  id: string;
  tableId: number;
  table: string;
  model: string;
  bands: Band[];
  /** What the house declares, null where it declares nothing. */
  edge: number | null;
  /** The newest calibration; null for a table's first. */
  checkpoint: Checkpoint | null;
  /** The live state at this moment, which the replay must meet. */
  live: { learnedSeq: bigint; stateHash: string; state: Buffer } | null;
}

/** Claims a run, or null where it is done, cancelled or worked on elsewhere. */
export async function takeRun(sql: Sql, run: string): Promise<TakenRun | null> {
  const rows = await sql`
    update calibration_runs
    set
      status = 'running',
      heartbeat_at = clock_timestamp()
    where id = ${run}
      and status in ('queued', 'running')
      and (status = 'queued' or heartbeat_at < clock_timestamp() - ${SILENT_SECONDS} * interval '1 second')
    returning id`;
  if (rows.length === 0) return null;
  const [taken] = await sql<
    (Omit<TakenRun, "checkpoint" | "live"> & {
      toSeq: bigint | null;
      rounds: bigint | null;
      checkpointState: Buffer | null;
      checkpointHash: string | null;
      sums: unknown;
      learnedSeq: bigint | null;
      liveState: Buffer | null;
      liveHash: string | null;
    })[]
  >`
    select
      r.id::text as id,
      t.id as "tableId",
      t.house_id || '/' || t.game || '/' || t.market as "table",
      r.model,
      t.colors as bands,
      (t.settings ->> 'house_edge')::float8 as edge,
      c.to_seq as "toSeq",
      c.rounds,
      c.state as "checkpointState",
      c.state_hash as "checkpointHash",
      c.sums,
      s.learned_seq as "learnedSeq",
      s.state as "liveState",
      s.state_hash as "liveHash"
    from calibration_runs r
    join tables t on t.id = r.table_id
    left join model_states s on s.table_id = r.table_id and s.model = r.model
    left join lateral (
      select to_seq, rounds, state, state_hash, sums
      from calibrations
      where table_id = r.table_id
        and model = r.model
      order by version desc
      limit 1
    ) c on true
    where r.id = ${run}`;
  if (taken === undefined) return null;
  const { toSeq, rounds, checkpointState, checkpointHash, sums, learnedSeq, liveState, liveHash, ...rest } = taken;
  return {
    ...rest,
    checkpoint:
      toSeq === null || rounds === null || checkpointState === null || checkpointHash === null
        ? null
        : { toSeq, rounds, state: checkpointState, stateHash: checkpointHash, sums },
    live:
      learnedSeq === null || liveState === null || liveHash === null
        ? null
        : { learnedSeq, state: liveState, stateHash: liveHash },
  };
}

/** Says that a run is still worked on. */
export async function beatRun(sql: Sql, run: string): Promise<void> {
  await sql`
    update calibration_runs
    set heartbeat_at = clock_timestamp()
    where id = ${run}`;
}

/** Gives a run back to whoever takes it next. */
export async function releaseRun(sql: Sql, run: string): Promise<void> {
  await sql`
    update calibration_runs
    set status = 'queued'
    where id = ${run}
      and status = 'running'`;
}

/** Ends a run that had nothing to replay, saying why. */
export async function endRun(sql: Sql, run: string, reason: string): Promise<void> {
  await sql`
    update calibration_runs
    set
      status = 'done',
      reason = ${reason},
      finished_at = clock_timestamp()
    where id = ${run}`;
}

/** A calibration ready to be stored. */
export interface NewCalibration {
  tableId: number;
  model: string;
  fromSeq: bigint;
  toSeq: bigint;
  rounds: bigint;
  state: Buffer;
  stateHash: string;
  /** The live state, where the replay has come to it: its hash, and whether the replay met it. */
  live: { stateHash: string; isMet: boolean } | null;
  weights: Record<string, number>;
  sums: SumsJson;
}

/**
 * Stores a calibration of a run under the table's next version and returns that, or null where the run is no longer
 * ours. One that came to the live state ends the run; where it met it, it is shown beside the table's forecasts.
 */
export async function saveCalibration(sql: Sql, run: string, calibration: NewCalibration): Promise<number | null> {
  const { live } = calibration;
  return sql.begin(async (tx) => {
    const ours = await tx`
      update calibration_runs
      set heartbeat_at = clock_timestamp()
      where id = ${run}
        and status = 'running'
      returning id`;
    if (ours.length === 0) return null;
    const [row] = await tx<{ id: bigint; version: number; asOf: string }[]>`
      insert into calibrations (
        table_id, model, version, kind, from_seq, to_seq, rounds, state, state_hash, live_state_hash, weights, sums
      )
      select
        ${calibration.tableId}, ${calibration.model}, coalesce(max(version), 0) + 1, 'rolling', ${calibration.fromSeq},
        ${calibration.toSeq}, ${calibration.rounds}, ${calibration.state}, ${calibration.stateHash},
        ${live?.stateHash ?? null}, ${tx.json(calibration.weights)}, ${tx.json(calibration.sums)}
      from calibrations
      where table_id = ${calibration.tableId}
        and model = ${calibration.model}
      returning id, version, utc_text(created_at) as "asOf"`;
    if (row === undefined) throw new Error("expected the stored calibration, got nothing");
    if (live !== null) {
      await tx`
        update calibration_runs
        set
          status = 'done',
          finished_at = clock_timestamp(),
          calibration_id = ${row.id}
        where id = ${run}`;
    }
    if (live?.isMet === true) {
      const shown: PublishedCalibration = {
        version: row.version,
        rounds: Number(calibration.rounds),
        as_of: row.asOf,
      };
      await tx`
        update published_now
        set
          calibration = ${tx.json(shown)},
          updated_at = clock_timestamp()
        where table_id = ${calibration.tableId}`;
    }
    return row.version;
  });
}

/** What `published_now.calibration` holds. */
export type PublishedCalibration = { version: number; rounds: number; as_of: string };

/** A calibration as listed and shown. */
export interface CalibrationRow {
  id: string;
  table: string;
  model: string;
  version: number;
  kind: string;
  fromSeq: bigint;
  toSeq: bigint;
  rounds: bigint;
  stateHash: string;
  /** Null where the replay had not come to the live state. */
  liveStateHash: string | null;
  weights: Record<string, number>;
  sums: unknown;
  createdAt: string;
}

/** Calibrations, newest first: of one table where `tableId` is given, else of all; or the one with an id. */
export async function listCalibrations(
  sql: Queryable,
  { tableId, id, limit }: { tableId?: number | undefined; id?: string | undefined; limit: number },
): Promise<CalibrationRow[]> {
  return sql<CalibrationRow[]>`
    select
      c.id::text as id,
      t.house_id || '/' || t.game || '/' || t.market as "table",
      c.model, c.version, c.kind,
      c.from_seq as "fromSeq",
      c.to_seq as "toSeq",
      c.rounds,
      c.state_hash as "stateHash",
      c.live_state_hash as "liveStateHash",
      c.weights, c.sums,
      utc_text(c.created_at) as "createdAt"
    from calibrations c
    join tables t on t.id = c.table_id
    where true
      ${tableId === undefined ? sql`` : sql`and c.table_id = ${tableId}`}
      ${id === undefined ? sql`` : sql`and c.id = ${id}`}
    order by c.id desc
    limit ${limit}`;
}
