import type { Sql } from "../db/client.ts";
import { PermanentError, reasonOf } from "../errors.ts";
import { releaseLostRun } from "./runs/lost-attempts-store.ts";
import {
  beatRun,
  endRun,
  releaseRun,
  saveRollingCalibration,
  takeRun,
  type TakenRun,
} from "./runs/rolling-run-store.ts";
import { replayUpTo, resumeReplay, snapshotOf, startReplay, type Replay } from "./backtest/replay.ts";
import { modelOfState, stateHash } from "../forecasts/model/state.ts";
import { modelOf } from "../forecasts/model/table-model.ts";

/** Sizes of the chunks and the checkpoints of a replay, in rounds. */
export interface ReplaySteps {
  roundsPerChunk: number;
  roundsPerCheckpoint: number;
}

/** A chunk takes 10 ms, because the process has other work; a killed replay loses about a second. */
const STEPS: ReplaySteps = { roundsPerChunk: 2000, roundsPerCheckpoint: 100_000 };

/** Result of a rolling run: whether the replay equals the live state bit for bit. */
export interface Calibrated {
  table: string;
  version: number;
  rounds: number;
  isMet: boolean;
  /** Hashes of the replayed state and of the live one, and the stored hash of the live one. */
  replayed: string;
  live: string;
  stored: string;
}

/**
 * Replays a table from its newest calibration up to the live state and stores the result as the next calibration.
 *
 * No locks: rounds are insert-only, so the replay up to the live state's seq sees the same rounds as the live path.
 * Returns null if the run is done, claimed by another worker or superseded by a promotion, or the table learned nothing
 * new. A run that is aborted or fails is released, with the reason, and resumes from its last checkpoint.
 *
 * @throws PermanentError if too many workers in a row died during the run; it waits 15 minutes then
 */
export async function runRollingCalibration(
  sql: Sql,
  run: string,
  signal: AbortSignal,
  steps: ReplaySteps = STEPS,
): Promise<Calibrated | null> {
  const lost = await releaseLostRun(sql, run);
  if (lost !== null) throw new PermanentError(lost);
  const taken = await takeRun(sql, run);
  if (taken === null) return null;
  const { live } = taken;
  try {
    const replay = beginning(taken);
    if (live === null || live.learnedSeq <= replay.seq) {
      await endRun(sql, taken, "nothing was learned since the newest calibration");
      return null;
    }
    return await replayToLive(sql, taken, live, replay, signal, steps);
  } catch (error) {
    // a run that cannot be released is claimed when its heartbeat is a minute old; `error` matters more
    await releaseRun(sql, taken, reasonOf(error)).catch(() => undefined);
    throw error;
  }
}

/** Starts from the newest undamaged calibration, or from the first round of the live state if there is none. */
function beginning(taken: TakenRun): Replay {
  const { checkpoints, live, bands, edge } = taken;
  const table = { tableId: taken.tableId, bands, hasOtherBands: false };
  for (const checkpoint of checkpoints) {
    if (stateHash(checkpoint.state) !== checkpoint.stateHash) continue;
    try {
      return resumeReplay(table, checkpoint);
    } catch {
      // damaged, which `verify` reports; an older calibration leads to the same state
    }
  }
  const isSound = live !== null && stateHash(live.state) === live.stateHash;
  // the edge in the houses file may have changed since the first round
  const model = isSound ? modelOfState(live.state) : modelOf(bands, edge);
  if (model.name !== taken.model)
    throw new Error(`expected a sound state of ${taken.model}, found one of ${model.name}; run \`table repair\``);
  return startReplay(table, model, checkpoints[0]?.beginSeq ?? 1n, checkpoints[0]);
}

async function replayToLive(
  sql: Sql,
  taken: TakenRun,
  live: NonNullable<TakenRun["live"]>,
  replay: Replay,
  signal: AbortSignal,
  { roundsPerChunk, roundsPerCheckpoint }: ReplaySteps,
): Promise<Calibrated | null> {
  const before = replay.rounds;
  let kept = { seq: replay.seq, rounds: replay.rounds };
  let isOurs = true;
  const given = new AbortController();
  await replayUpTo(sql, replay, live.learnedSeq, {
    roundsPerChunk,
    signal: AbortSignal.any([signal, given.signal]),
    async afterChunk() {
      if (replay.seq === live.learnedSeq || replay.rounds - kept.rounds < BigInt(roundsPerCheckpoint)) {
        isOurs = await beatRun(sql, taken);
      } else {
        isOurs = (await keep(sql, taken, kept.seq, replay, null)) !== null;
        kept = { seq: replay.seq, rounds: replay.rounds };
      }
      if (!isOurs) given.abort();
    },
  });
  if (!isOurs) return null;
  if (replay.seq < live.learnedSeq) signal.throwIfAborted();
  const { stateHash: replayed } = snapshotOf(replay);
  // compares the bytes, not the stored hash: a damaged state keeps its old hash
  const found = stateHash(live.state);
  const isMet = replayed === found && replayed === live.stateHash;
  const version = await keep(sql, taken, kept.seq, replay, { stateHash: found, isMet });
  if (version === null) return null;
  return {
    table: taken.table,
    version,
    rounds: Number(replay.rounds - before),
    isMet,
    replayed,
    live: found,
    stored: live.stateHash,
  };
}

function keep(
  sql: Sql,
  { run, epoch, tableId, model }: TakenRun,
  afterSeq: bigint,
  replay: Replay,
  live: { stateHash: string; isMet: boolean } | null,
): Promise<number | null> {
  const calibration = {
    ...snapshotOf(replay),
    tableId,
    kind: "rolling" as const,
    model,
    fromSeq: afterSeq + 1n,
    otherBands: false,
    liveStateHash: live?.stateHash ?? null,
    compared: null,
    promotion: null,
  };
  return saveRollingCalibration(sql, { run, epoch }, calibration, live?.isMet ?? null);
}
