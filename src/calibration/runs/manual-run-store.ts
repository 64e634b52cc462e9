import type { Queryable, Sql } from "../../db/client.ts";
import { asJson, insertCalibration, type NewCalibration } from "../calibration-store.ts";
import { type Attempt, finishRun } from "./rolling-run-store.ts";
import { valuesOf } from "../../forecasts/model/parameter-set.ts";
import { K7_1, type Parameters } from "../../forecasts/model/parameters.ts";
import type { ReplayRange } from "../backtest/range-store.ts";
import type { Seen } from "../backtest/replay-store.ts";
import type { Snapshot } from "../backtest/replay.ts";
import type { Band } from "../../forecasts/model/table-model.ts";

/** A process sends a heartbeat per second for its run; after this time without one it is considered dead. */
export const SILENT_SECONDS = 5;

/** A manual run to store. */
export interface NewManualRun {
  tableId: number;
  /** Model name of these parameters with the bands and the current declared edge of the table. */
  model: string;
  parameters: Parameters;
  /** Lower ends of other bands than the table's, in hundredths; null for the table's bands. */
  thresholds: readonly number[] | null;
  range: ReplayRange;
  outFile: string | null;
  /** Present if a worker shall run it; otherwise the requesting process does. */
  order?: RunOrder | undefined;
}

/** Who requested a run from a worker, and why. */
export interface RunOrder {
  by: string;
  why: string;
  /** The run that this one repeats. */
  parent: string | null;
}

/** Stores an unclaimed manual run and its parameter set. */
export async function createManualRun(sql: Sql, run: NewManualRun): Promise<string> {
  return sql.begin(async (tx) => {
    if (run.parameters.name !== K7_1.name) {
      await tx`
        insert into model_parameters (name, parameters)
        values (${run.parameters.name}, ${tx.json(valuesOf(run.parameters))})
        on conflict do nothing`;
    }
    const thresholds = run.thresholds === null ? null : run.thresholds.map(String);
    const [row] = await tx<{ id: string }[]>`
      insert into calibration_runs (
        table_id, kind, model, thresholds, from_seq, to_seq, seen_seq, revision_id, out_file, runner, parent_run_id,
        asked_by, asked_why
      )
      values (
        ${run.tableId}, 'manual', ${run.model}, ${thresholds}::bigint[], ${run.range.fromSeq},
        ${run.range.toSeq}, ${run.range.seenSeq},
        (select coalesce(max(id), 0) from round_revision where table_id = ${run.tableId}), ${run.outFile},
        ${run.order === undefined ? "cli" : "worker"}, ${run.order?.parent ?? null}, ${run.order?.by ?? null},
        ${run.order?.why ?? null}
      )
      returning id::text as id`;
    if (row === undefined) throw new Error("expected the stored run, found none");
    return row.id;
  });
}

/** A manual run. */
export interface ManualRun extends ReplayRange {
  id: string;
  tableId: number;
  table: string;
  bands: Band[];
  edge: number | null;
  consecutive: boolean;
  model: string;
  thresholds: number[] | null;
  /** The newest revision that it includes; 0 if there was none. */
  revisionId: bigint;
  fromRoundId: string;
  toRoundId: string;
  outFile: string | null;
  status: "queued" | "running" | "done" | "failed" | "cancelled";
  calibrationId: string | null;
}

/** The manual run with an id; null if there is none. */
export async function findManualRun(sql: Queryable, id: string): Promise<ManualRun | null> {
  const [row] = await sql<(Omit<ManualRun, "thresholds"> & { thresholds: string[] | null })[]>`
    select
      r.id::text as id,
      t.id as "tableId",
      t.house_id || '/' || t.game || '/' || t.market as "table",
      p.bands,
      (t.settings ->> 'house_edge')::float8 as edge,
      t.round_ids = 'consecutive' as consecutive,
      r.model,
      r.thresholds::text[] as thresholds,
      r.from_seq as "fromSeq",
      r.to_seq as "toSeq",
      r.seen_seq as "seenSeq",
      r.revision_id as "revisionId",
      case
        when r.seen_seq is null then (select round_id from rounds where table_id = r.table_id and seq = r.from_seq)
        else r.from_seq::text
      end as "fromRoundId",
      case
        when r.seen_seq is null then (select round_id from rounds where table_id = r.table_id and seq = r.to_seq)
        else r.to_seq::text
      end as "toRoundId",
      r.out_file as "outFile",
      r.status,
      r.calibration_id::text as "calibrationId"
    from calibration_runs r
    join tables t on t.id = r.table_id
    join table_heads h on h.table_id = r.table_id
    join palettes p on p.id = h.palette
    where r.id = ${id}
      and r.kind = 'manual'`;
  return row === undefined ? null : { ...row, thresholds: row.thresholds?.map(Number) ?? null };
}

/** Who claims a run: a command, or a worker, which claims only queued runs. */
export type Runner = "cli" | "worker";

/**
 * Claims a run and returns the number of the attempt, a fencing token for every write. Null if the run is done or claimed
 * by a live process; for a worker also if it is not queued: a cancelled run stays so until it is resumed.
 */
export async function claimManualRun(sql: Queryable, id: string, runner: Runner = "cli"): Promise<number | null> {
  const [row] = await sql<{ epoch: number }[]>`
    update calibration_runs
    set
      status = 'running',
      reason = null,
      finished_at = null,
      epoch = epoch + 1,
      lost_attempts = case when ${runner === "cli"} then 0 when status = 'running' then lost_attempts + 1 else lost_attempts end,
      runner = ${runner},
      -- a command that resumes a run revokes its cancellation; a worker must still see it
      cancel_asked_at = case when ${runner === "worker"} then cancel_asked_at end,
      attempt_started_at = null,
      attempt_from_seq = null,
      heartbeat_at = clock_timestamp()
    where id = ${id}
      and kind = 'manual'
      and status <> 'done'
      and (status <> 'running' or heartbeat_at < clock_timestamp() - ${SILENT_SECONDS} * interval '1 second')
      and (${runner === "cli"} or (runner = 'worker' and status in ('queued', 'running')))
    returning epoch`;
  return row?.epoch ?? null;
}

/** Runs that a worker can claim: queued, or the heartbeat of their worker has stopped. */
export async function listWaitingManualRuns(sql: Queryable): Promise<{ run: string }[]> {
  return sql<{ run: string }[]>`
    select id::text as run
    from calibration_runs
    where kind = 'manual'
      and runner = 'worker'
      and status in ('queued', 'running')
      and (status = 'queued' or heartbeat_at < clock_timestamp() - ${SILENT_SECONDS} * interval '1 second')
    order by requested_at
    limit 1000`;
}

/**
 * Stores a heartbeat of the run, and its seq if given. Returns whether the run shall stop.
 *
 * @throws Error if another process has claimed it since
 */
export async function beatManualRun(
  sql: Queryable,
  { run, epoch }: Attempt,
  atSeq: bigint | null = null,
): Promise<boolean> {
  const [row] = await sql<{ isCancelled: boolean }[]>`
    update calibration_runs
    set
      heartbeat_at = clock_timestamp(),
      at_seq = coalesce(${atSeq}::bigint, at_seq),
      -- the rate is counted from the position at the first heartbeat of an attempt
      attempt_from_seq = coalesce(attempt_from_seq, ${atSeq}::bigint),
      attempt_started_at = coalesce(attempt_started_at, clock_timestamp())
    where id = ${run}
      and epoch = ${epoch}
      and status = 'running'
    returning cancel_asked_at is not null as "isCancelled"`;
  if (row === undefined) throw new Error(`run ${run} was claimed by another process; this one stops`);
  return row.isCancelled;
}

/** The position from which a run resumes, with the state of its output file. */
export interface Checkpoint extends Omit<Snapshot, "beginSeq" | keyof Seen> {
  file: unknown;
}

/** The last checkpoint of a run; null before the first. */
export async function findCheckpoint(sql: Queryable, run: string): Promise<Checkpoint | null> {
  const [row] = await sql<Checkpoint[]>`
    select to_seq as "toSeq", rounds, late_rounds as "lateRounds", state, state_hash as "stateHash", sums, carry, file
    from backtest_checkpoints
    where run_id = ${run}`;
  return row ?? null;
}

/** Saves a checkpoint. @throws Error if another process has claimed the run. */
export async function saveCheckpoint(sql: Sql, attempt: Attempt, checkpoint: Checkpoint): Promise<void> {
  await sql.begin(async (tx) => {
    await beatManualRun(tx, attempt, checkpoint.toSeq);
    await tx`update calibration_runs set lost_attempts = 0 where id = ${attempt.run}`;
    await tx`
      insert into backtest_checkpoints (run_id, to_seq, rounds, late_rounds, state, state_hash, sums, carry, file)
      values (
        ${attempt.run}, ${checkpoint.toSeq}, ${checkpoint.rounds}, ${checkpoint.lateRounds}, ${checkpoint.state},
        ${checkpoint.stateHash}, ${asJson(tx, checkpoint.sums)}, ${asJson(tx, checkpoint.carry)}, ${asJson(tx, checkpoint.file)}
      )
      on conflict (run_id) do update
      set
        to_seq = excluded.to_seq,
        rounds = excluded.rounds,
        late_rounds = excluded.late_rounds,
        state = excluded.state,
        state_hash = excluded.state_hash,
        sums = excluded.sums,
        carry = excluded.carry,
        file = excluded.file,
        saved_at = clock_timestamp()`;
  });
}

/**
 * Ends the attempt before the end of the run, with the reason; `queued` leaves the run to the next worker. Does nothing if
 * another process has claimed the run.
 */
export async function leaveManualRun(
  sql: Sql,
  { run, epoch }: Attempt,
  status: "cancelled" | "failed" | "queued",
  reason: string,
): Promise<void> {
  await sql`
    update calibration_runs
    set
      status = ${status},
      reason = ${reason},
      finished_at = case when ${status} <> 'queued' then clock_timestamp() end
    where id = ${run}
      and epoch = ${epoch}
      and status = 'running'`;
}

/** Stores the calibration, ends the run and removes its checkpoint. @throws Error if another process has claimed it. */
export async function finishManualRun(sql: Sql, attempt: Attempt, calibration: NewCalibration): Promise<string> {
  return sql.begin(async (tx) => {
    await beatManualRun(tx, attempt);
    const { id } = await insertCalibration(tx, calibration);
    await finishRun(tx, attempt.run, id);
    await tx`delete from backtest_checkpoints where run_id = ${attempt.run}`;
    return id;
  });
}
