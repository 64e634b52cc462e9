import type { Sql } from "../db/client.ts";
import { beatRun, endRun, releaseRun, saveCalibration, takeRun, type TakenRun } from "./calibration-store.ts";
import { emptyState, weights, type State } from "./k7.ts";
import type { Model } from "./model.ts";
import { listRoundsToLearn } from "./model-store.ts";
import { EXPERTS } from "./parameters.ts";
import { replayRounds } from "./replay.ts";
import { decodeState, encodeState, modelOfState, stateHash } from "./state.ts";
import { emptySums, mergeSums, sumsFromJson, sumsToJson, type Sums } from "./sums.ts";
import { modelOf } from "./table-model.ts";

/** How a replay is cut: what is read at once, and after how much it leaves a place to go on from. */
export interface ReplaySteps {
  roundsPerChunk: number;
  roundsPerCheckpoint: number;
}

/** A chunk is some 20 ms of computing; a replay that is killed loses a few seconds of work. */
const STEPS: ReplaySteps = { roundsPerChunk: 1000, roundsPerCheckpoint: 100_000 };

/** What a rolling run found: whether the replay met the live state bit for bit. */
export interface Calibrated {
  table: string;
  version: number;
  rounds: number;
  isMet: boolean;
  /** Hashes of the replayed state, of the live one, and what the live one is said to have. */
  replayed: string;
  live: string;
  saidToBe: string;
}

/**
 * Replays a table from its newest calibration up to the live state and keeps the result as the next calibration.
 *
 * Nothing is locked: rounds are insert-only, so the replay up to the live state's seq sees what the live path saw.
 * Null where the run is done, worked on elsewhere, or the table has not learned anything new. An aborted run is given
 * back and goes on from the last place it left.
 */
export async function runRollingCalibration(
  sql: Sql,
  run: string,
  signal: AbortSignal,
  steps: ReplaySteps = STEPS,
): Promise<Calibrated | null> {
  const taken = await takeRun(sql, run);
  if (taken === null) return null;
  const { live } = taken;
  const from = beginning(taken);
  if (live === null || live.learnedSeq <= from.seq) {
    await endRun(sql, run, "nothing was learned since the newest calibration");
    return null;
  }
  try {
    return await replayTo(sql, taken, live, from, signal, steps);
  } catch (error) {
    if (signal.aborted) await releaseRun(sql, run);
    throw error;
  }
}

/** Where a replay stands. */
interface Place {
  model: Model;
  state: State;
  sums: Sums;
  seq: bigint;
  /** On-time rounds from the table's first to `seq`. */
  rounds: bigint;
}

/** The newest calibration, unless its bytes are damaged: then the first round. */
function beginning({ checkpoint, live, bands, edge }: TakenRun): Place {
  if (checkpoint !== null && stateHash(checkpoint.state) === checkpoint.stateHash) {
    const model = modelOfState(checkpoint.state);
    const state = decodeState(model, checkpoint.state);
    return { model, state, sums: sumsFromJson(checkpoint.sums), seq: checkpoint.toSeq, rounds: checkpoint.rounds };
  }
  const isSound = live !== null && stateHash(live.state) === live.stateHash;
  // the file's edge may have changed since the table began
  const model = isSound ? modelOfState(live.state) : modelOf(bands, edge);
  return { model, state: emptyState(model), sums: emptySums(), seq: 0n, rounds: 0n };
}

async function replayTo(
  sql: Sql,
  taken: TakenRun,
  live: NonNullable<TakenRun["live"]>,
  from: Place,
  signal: AbortSignal,
  { roundsPerChunk, roundsPerCheckpoint }: ReplaySteps,
): Promise<Calibrated | null> {
  let place = from;
  let kept = from;
  while (place.seq < live.learnedSeq) {
    signal.throwIfAborted();
    const span = { tableId: taken.tableId, afterSeq: place.seq, upToSeq: live.learnedSeq };
    const rounds = await listRoundsToLearn(sql, [span], roundsPerChunk);
    const last = rounds.length < roundsPerChunk ? undefined : rounds.at(-1);
    place = {
      ...place,
      sums: mergeSums([place.sums, replayRounds(place.model, place.state, taken.bands, rounds)]),
      seq: last?.seq ?? live.learnedSeq,
      rounds: place.rounds + BigInt(rounds.length),
    };
    if (place.seq < live.learnedSeq && place.rounds - kept.rounds >= roundsPerCheckpoint) {
      if ((await keep(sql, taken, kept, place, null)) === null) return null;
      kept = place;
    } else {
      await beatRun(sql, taken.id);
    }
  }
  const replayed = stateHash(encodeState(place.model, place.state));
  // the bytes are compared, not only the hash beside them: a damaged state must not pass by its old hash
  const found = stateHash(live.state);
  const isMet = replayed === found && replayed === live.stateHash;
  const version = await keep(sql, taken, kept, place, { stateHash: found, isMet });
  if (version === null) return null;
  return {
    table: taken.table,
    version,
    rounds: Number(place.rounds - from.rounds),
    isMet,
    replayed,
    live: found,
    saidToBe: live.stateHash,
  };
}

async function keep(
  sql: Sql,
  { id, tableId, model }: TakenRun,
  after: Place,
  place: Place,
  live: { stateHash: string; isMet: boolean } | null,
): Promise<number | null> {
  const state = encodeState(place.model, place.state);
  return saveCalibration(sql, id, {
    tableId,
    model,
    fromSeq: after.seq + 1n,
    toSeq: place.seq,
    rounds: place.rounds,
    state,
    stateHash: stateHash(state),
    live,
    weights: Object.fromEntries(
      weights(place.model, place.state).map((weight, index) => [EXPERTS[index] ?? `${index}`, weight]),
    ),
    sums: sumsToJson(place.sums),
  });
}
