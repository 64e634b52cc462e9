import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import type { Sql } from "../db/client.ts";
import { reasonOf, UsageError } from "../errors.ts";
import type { ExportedForecast } from "../forecasts/chain/export-store.ts";
import { backtestRows } from "./backtest/backtest-rows.ts";
import { replayUpTo, resumeReplay, snapshotOf, startReplay, type Replay } from "./backtest/replay.ts";
import type { ReplaySteps } from "./calibrate.ts";
import { modelOfRun } from "./manual-request.ts";
import { calibrationOf, type ManualResult, resultOf } from "./manual-result.ts";
import { giveUpLostRun } from "./runs/lost-attempts-store.ts";
import {
  beatManualRun,
  claimManualRun,
  findCheckpoint,
  findManualRun,
  finishManualRun,
  leaveManualRun,
  saveCheckpoint,
  SILENT_SECONDS,
  type ManualRun,
} from "./runs/manual-run-store.ts";
import type { Attempt } from "./runs/rolling-run-store.ts";
import { findParameters } from "./runs/parameter-set-store.ts";

/** Large chunks, because this process has no other work; a checkpoint takes 10 ms, and a killed run loses a second. */
const STEPS: ReplaySteps = { roundsPerChunk: 20_000, roundsPerCheckpoint: 200_000 };

/** The output file of a run's forecasts. */
export interface BacktestFile {
  write(rows: readonly ExportedForecast[]): Promise<void>;
  /** Flushes to disk; returns the size, to which the file can be truncated later. */
  mark(): Promise<number>;
  /** Moves the finished file to its final name. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

/** How far the output file of a run is complete at a checkpoint. */
export interface FileMark {
  bytes: number;
  /** Hash of the last line; null if there is only the header. */
  lastHash: string | null;
}

/** Dependencies of a run. */
export interface ManualWork {
  signal: AbortSignal;
  steps?: ReplaySteps;
  /** Called with the progress of the run, in seqs of its range. */
  progress?: (done: number, of: number) => void;
  /** Opens the output file of a run, truncated to a mark; null for a new file. */
  openFile?: (path: string, run: string, mark: FileMark | null) => Promise<BacktestFile>;
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
  const file = await work.openFile(outFile, id, before && { bytes: before.bytes, lastHash: rows.writtenHash() });
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
