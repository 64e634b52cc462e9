import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import type { Queryable, Sql } from "../db/client.ts";
import { reasonOf, UsageError } from "../errors.ts";
import { backtestRows } from "./backtest/backtest-rows.ts";
import type { ReplaySteps } from "./calibrate.ts";
import { findCalibration, type NewCalibration } from "./calibration-store.ts";
import type { ExportedForecast } from "../forecasts/chain/export-store.ts";
import { figuresOf } from "../forecasts/accuracy/figures/figures.ts";
import { giveUpLostRun } from "./runs/lost-attempts-store.ts";
import {
  beatManualRun,
  claimManualRun,
  createManualRun,
  findCheckpoint,
  findLiveHash,
  findLiveRecord,
  findManualRun,
  findParameters,
  finishManualRun,
  leaveManualRun,
  saveCheckpoint,
  SILENT_SECONDS,
  type ManualRun,
  type RunOrder,
  type Attempt,
} from "./runs/manual-run-store.ts";
import {
  findEnds,
  findLateRounds,
  findRound,
  findRoundAt,
  orderOf,
  readOrder,
  readSettings,
  type LateRounds,
  type ReplayOrder,
  type ReplayRange,
  type RoundPlace,
} from "./backtest/range-store.ts";
import { createModel, type Model } from "../forecasts/model/model.ts";
import type { Parameters } from "../forecasts/model/parameters.ts";
import { replayUpTo, resumeReplay, snapshotOf, startReplay, sumsOf, type Replay } from "./backtest/replay.ts";
import { emptySums } from "../forecasts/accuracy/figures/sums.ts";
import { modelOf } from "../forecasts/model/table-model.ts";

/** Large chunks, because this process has no other work; a checkpoint takes 10 ms, and a killed run loses a second. */
const STEPS: ReplaySteps = { roundsPerChunk: 20_000, roundsPerCheckpoint: 200_000 };

/** PostgreSQL has no year 0. */
const FIRST_MOMENT = new Date("0001-01-01T00:00Z");

/** The range to replay; both ends are round ids or times of receipt, inclusive. */
export interface ManualRequest {
  tableId: number;
  table: string;
  from: string | undefined;
  to: string | undefined;
  parameters: Parameters;
  thresholds: readonly number[] | null;
  outFile: string | null;
  /** Present if a worker shall run it. */
  order?: RunOrder;
  replayOrder?: ReplayOrder | undefined;
  /** Names of these inputs in error messages. */
  words?: typeof WORDS;
}

const WORDS = { from: "--from", to: "--to", order: "--order" };

/** A day or a time of UTC; no house has such round ids. */
const MOMENT = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?Z?$/;

/**
 * Stores a manual run and returns its id. Without `replayOrder` the order is by id if ids are consecutive, else the order
 * taken. Both are equal for a range without late rounds: then the order taken is stored unless the other is requested,
 * since only such a run can be promoted.
 *
 * @throws UsageError if the table does not have the range or the order
 */
export async function requestManualRun(sql: Sql, request: ManualRequest): Promise<string> {
  const { tableId, parameters, thresholds, outFile, order } = request;
  const range = await rangeOf(sql, request);
  const { name: model } = modelOfRun({ ...(await readSettings(sql, tableId)), thresholds, parameters });
  return createManualRun(sql, { tableId, model, parameters, thresholds, range, outFile, order });
}

async function rangeOf(sql: Sql, request: ManualRequest): Promise<ReplayRange> {
  const { tableId, table, replayOrder, words = WORDS } = request;
  const { newestSeq, isConsecutive } = await readOrder(sql, tableId);
  if (replayOrder === "round" && !isConsecutive)
    throw new UsageError(`${words.order}: the round ids of ${table} are not consecutive numbers; use taken`);
  const order = replayOrder ?? (isConsecutive ? "round" : "taken");
  const ends = await findEnds(sql, tableId, order);
  if (ends === null) throw new UsageError(`${table} has no rounds to replay yet; import some, or wait for its first`);
  const from = await placeOf(sql, request, "from", order, ends);
  const to = await placeOf(sql, request, "to", order, ends);
  const [fromAt, toAt] = order === "taken" ? [from.seq, to.seq] : [BigInt(from.roundId), BigInt(to.roundId)];
  if (fromAt > toAt) {
    const after = order === "taken" ? "was stored after" : "is after";
    throw new UsageError(`${words.from}: round ${from.roundId} of ${table} ${after} round ${to.roundId}`);
  }
  const range = { fromSeq: fromAt, toSeq: toAt, seenSeq: order === "taken" ? null : newestSeq };
  if (replayOrder !== undefined || order === "taken") return range;
  const { rounds } = await findLateRounds(sql, tableId, range);
  return rounds > 0 ? range : { fromSeq: from.seq, toSeq: to.seq, seenSeq: null };
}

async function placeOf(
  sql: Sql,
  request: ManualRequest,
  end: "from" | "to",
  order: ReplayOrder,
  ends: { first: RoundPlace; last: RoundPlace },
): Promise<RoundPlace> {
  const { tableId, table, words = WORDS } = request;
  const roundId = request[end];
  const option = words[end];
  if (roundId === undefined) return end === "from" ? ends.first : ends.last;
  if (MOMENT.test(roundId)) return placeAt(sql, request, { end, option, text: roundId });
  const place = await findRound(sql, tableId, roundId);
  const whole = `its ${order === "taken" ? "on-time rounds" : "rounds"} go from ${ends.first.roundId} to ${ends.last.roundId}`;
  if (place === null) throw new UsageError(`${option}: there is no round ${roundId} in ${table}; ${whole}`);
  if (place.late && order === "taken")
    throw new UsageError(
      `${option}: round ${roundId} of ${table} was late, and only a replay by round id includes late rounds; ${whole}`,
    );
  return place;
}

async function placeAt(
  sql: Sql,
  { tableId, table }: ManualRequest,
  { end, option, text }: { end: "from" | "to"; option: string; text: string },
): Promise<RoundPlace> {
  const moment = new Date(
    `${text.replace(" ", "T").replace(/Z$/, "")}${text.length > "2026-11-21".length + 1 ? "Z" : ""}`,
  );
  if (Number.isNaN(moment.getTime()) || moment < FIRST_MOMENT)
    throw new UsageError(`${option}: expected a time such as 2026-11-21T04:00, found ${text}`);
  const at = moment.toISOString();
  const place = await findRoundAt(sql, tableId, { at, end });
  if (place !== null) return place;
  const where = end === "from" ? "at or after" : "at or before";
  throw new UsageError(`${option}: ${table} has no on-time round that was received ${where} ${at}`);
}

/** The output file of a run's forecasts. */
export interface BacktestFile {
  write(rows: readonly ExportedForecast[]): Promise<void>;
  /** Flushes to disk; returns the size, to which the file can be truncated later. */
  mark(): Promise<number>;
  /** Moves the finished file to its final name. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

/** Dependencies of a run. */
export interface ManualWork {
  signal: AbortSignal;
  steps?: ReplaySteps;
  /** Called with the progress of the run, in seqs of its range. */
  progress?: (done: number, of: number) => void;
  /** Opens the output file of a run, truncated to this size; null for a new file. */
  openFile?: (path: string, run: string, bytes: number | null) => Promise<BacktestFile>;
}

/** Result of a manual run; `from` and `to` are round ids. */
export interface ManualResult {
  run_id: string;
  calibration_id: string;
  table: string;
  model: string;
  from: string;
  to: string;
  order: ReplayOrder;
  rounds: number;
  /** Replayed only in order of round ids, with the first twenty stretches of them; 0 in the other order. */
  late_rounds: number;
  late: LateRounds["stretches"];
  state_hash: string;
  log_loss: number | null;
  baseline_log_loss: number | null;
  brier: number | null;
}

/**
 * Executes or resumes a manual run and stores its calibration: a replay from an empty state over a range of a table's
 * rounds, with the revisions at the time of the request. The result is the same bit for bit after any number of stops.
 * Takes no locks and changes nothing that callers see.
 *
 * An aborted run saves a checkpoint and throws the signal's reason; a killed one resumes from its last checkpoint. A
 * finished run returns its result again.
 *
 * @throws Error if another process has claimed it
 */
export async function runManualCalibration(sql: Sql, id: string, work: ManualWork): Promise<ManualResult> {
  const run = await findManualRun(sql, id);
  if (run === null) throw new UsageError(`there is no manual run ${id}`);
  if (run.calibrationId !== null) return resultOf(sql, run.id, run.calibrationId);
  const attempt = { run: id, epoch: await takeUp(sql, id, work.signal) };
  try {
    return await resultOf(sql, id, await replayRange(sql, run, attempt, work));
  } catch (error) {
    const isStopped = work.signal.aborted || error instanceof CancelledError;
    await leaveManualRun(sql, attempt, isStopped ? "cancelled" : "failed", reasonOf(error));
    throw error;
  }
}

/** The run was cancelled while this process worked on it. */
class CancelledError extends Error {
  override name = "CancelledError";
}

/** Outcome of a queued run. */
export type WaitingOutcome = "done" | "cancelled" | "skipped";

/**
 * Executes a queued run, see {@link runManualCalibration}. Skips it if it was cancelled or another worker has claimed it.
 * A stopping worker leaves the run to the next one at its last chunk.
 *
 * @throws Error if the run fails, or has lost too many workers; the reason is stored
 */
export async function runWaitingCalibration(sql: Sql, id: string, work: ManualWork): Promise<WaitingOutcome> {
  const run = await findManualRun(sql, id);
  const lost = run === null ? null : await giveUpLostRun(sql, id);
  if (lost !== null) throw new Error(lost);
  const epoch = run === null ? null : await claimManualRun(sql, id, "worker");
  if (run === null || epoch === null) return "skipped";
  const attempt = { run: id, epoch };
  try {
    await replayRange(sql, run, attempt, work);
    return "done";
  } catch (error) {
    const isCancelled = error instanceof CancelledError;
    const status = isCancelled ? "cancelled" : work.signal.aborted ? "queued" : "failed";
    await leaveManualRun(sql, attempt, status, reasonOf(error));
    if (isCancelled) return "cancelled";
    throw error;
  }
}

/** Claims the run; waits until the lease of a killed process has expired. */
async function takeUp(sql: Sql, id: string, signal: AbortSignal): Promise<number> {
  for (let waited = 0; ; waited++) {
    const epoch = await claimManualRun(sql, id);
    if (epoch !== null) return epoch;
    if (waited > SILENT_SECONDS * 4)
      throw new Error(`run ${id} is executed by another process; stop that one, or wait for its result`);
    await delay(500, undefined, { signal });
  }
}

async function replayRange(sql: Sql, run: ManualRun, attempt: Attempt, work: ManualWork): Promise<string> {
  const { steps = STEPS, progress = () => undefined } = work;
  const cancelled = new AbortController();
  const signal = AbortSignal.any([work.signal, cancelled.signal]);
  const { replay, mark } = await beginning(sql, run);
  if (await beatManualRun(sql, attempt, replay.seq))
    throw new CancelledError("cancelled before the first round of this attempt");
  signal.throwIfAborted();
  const file = await openRows(run, replay, mark, work);
  try {
    const leave = async () => {
      await saveCheckpoint(sql, attempt, { ...snapshotOf(replay), file: (await file?.mark()) ?? null });
    };
    let kept = replay.rounds;
    await replayUpTo(sql, replay, run.toSeq, {
      roundsPerChunk: steps.roundsPerChunk,
      signal,
      listener: file?.listener,
      async afterChunk() {
        await file?.write();
        progress(Number(replay.seq - run.fromSeq + 1n), Number(run.toSeq - run.fromSeq + 1n));
        if (replay.seq < run.toSeq && (signal.aborted || replay.rounds - kept >= BigInt(steps.roundsPerCheckpoint))) {
          await leave();
          kept = replay.rounds;
        } else if ((await beatManualRun(sql, attempt, replay.seq)) && replay.seq < run.toSeq) {
          await leave();
          cancelled.abort(new CancelledError(`cancelled after ${replay.rounds} rounds`));
        }
      },
    });
    if (replay.seq < run.toSeq) signal.throwIfAborted();
    await file?.finish();
    // the file first: a finished run has all of its lines
    return await finishManualRun(sql, attempt, await calibrationOf(sql, run, replay));
  } finally {
    await file?.close();
  }
}

async function beginning(sql: Sql, run: ManualRun): Promise<{ replay: Replay; mark: unknown }> {
  const table = { tableId: run.tableId, bands: run.bands, hasOtherBands: run.thresholds !== null };
  const { revisionId, seenSeq } = run;
  const seen = { revisionId, revisedSeq: revisionId === 0n ? 0n : (seenSeq ?? run.toSeq), seenSeq };
  const checkpoint = await findCheckpoint(sql, run.id);
  if (checkpoint !== null) {
    const kept = { ...checkpoint, ...seen, beginSeq: run.fromSeq };
    return { replay: resumeReplay(table, kept), mark: checkpoint.file };
  }
  const parameters = await findParameters(sql, run.model);
  if (parameters === null) throw new Error(`expected the parameters of ${run.model}, found none; start a new run`);
  const model = modelOfRun({ ...run, parameters });
  if (model.name !== run.model)
    throw new Error(
      `expected ${run.table} with the bands and edge of ${run.model}, found those of ${model.name}; start a new run`,
    );
  return { replay: startReplay(table, model, run.fromSeq, seen), mark: null };
}

function modelOfRun({
  bands,
  thresholds,
  edge,
  parameters,
}: Pick<ManualRun, "bands" | "edge"> & Pick<ManualRequest, "parameters" | "thresholds">): Model {
  return thresholds === null ? modelOf(bands, edge, parameters) : createModel({ thresholds, edge, parameters });
}

/** The lines of a run with their file; null if it writes none. */
async function openRows(
  { id, table, outFile, consecutive }: ManualRun,
  replay: Replay,
  mark: unknown,
  work: ManualWork,
) {
  if (outFile === null) return null;
  if (work.openFile === undefined) throw new UsageError(`the run writes ${outFile}; give --out again`);
  const { colors, backtest } = replay;
  const before = mark === null ? null : fileMark.parse(mark);
  const of = { table, model: backtest.model.name, consecutive, colors, features: backtest.features };
  const rows = backtestRows(of, before?.rows ?? null);
  const file = await work.openFile(outFile, id, before?.bytes ?? null);
  return {
    listener: rows.listener,
    write: () => file.write(rows.take()),
    mark: async () => ({ bytes: await file.mark(), rows: rows.mark() }),
    async finish() {
      await file.write(rows.take({ isEnd: true }));
      await file.finish();
    },
    close: () => file.close(),
  };
}

const fileMark = z.strictObject({ bytes: z.int().nonnegative(), rows: z.unknown() });

async function calibrationOf(sql: Queryable, run: ManualRun, replay: Replay): Promise<NewCalibration> {
  const snapshot = snapshotOf(replay);
  const live = await findLiveRecord(sql, run.tableId);
  const ofLive = live === null ? null : (sumsOf(live.sums).get("next_color") ?? emptySums());
  return {
    ...snapshot,
    tableId: run.tableId,
    kind: "manual",
    fromSeq: run.fromSeq,
    otherBands: run.thresholds !== null,
    liveStateHash:
      run.thresholds === null && run.seenSeq === null
        ? await findLiveHash(sql, { tableId: run.tableId, model: run.model, seq: run.toSeq })
        : null,
    promotion: null,
    compared:
      live === null || ofLive === null
        ? null
        : {
            calibration: live.id,
            model: live.model,
            version: live.version,
            to_seq: String(live.toSeq),
            state_hash: live.stateHash,
            n: String(ofLive.n),
            sum_ll: String(ofLive.sumLl),
            sum_ll_base: String(ofLive.sumLlBase),
            sum_brier: String(ofLive.sumBrier),
          },
  };
}

async function resultOf(sql: Queryable, run: string, calibrationId: string): Promise<ManualResult> {
  const row = await findCalibration(sql, calibrationId);
  if (row === null) throw new Error(`expected the calibration ${calibrationId} of run ${run}, found none`);
  const { log_loss, baseline_log_loss, brier } = figuresOf(
    "next_color",
    sumsOf(row.sums).get("next_color") ?? emptySums(),
  );
  return {
    run_id: run,
    calibration_id: calibrationId,
    table: row.table,
    model: row.model,
    from: row.fromRoundId ?? "",
    to: row.toRoundId ?? "",
    order: orderOf(row),
    rounds: Number(row.rounds),
    late_rounds: Number(row.lateRounds),
    late: (await findLateRounds(sql, row.tableId, { ...row, fromSeq: row.beginSeq })).stretches,
    state_hash: row.stateHash,
    log_loss,
    baseline_log_loss,
    brier,
  };
}
