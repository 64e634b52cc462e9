/**
 * A replay with its position in a table's history: its snapshots, and how it resumes from them.
 */
import { z } from "zod";
import type { Queryable } from "../../db/client.ts";
import { advance, backtestSums, startBacktest, type Backtest, type Listener } from "./backtest.ts";
import { weights } from "../../forecasts/model/k7.ts";
import type { Model } from "../../forecasts/model/model.ts";
import { EXPERTS } from "../../forecasts/model/parameters.ts";
import { AS_LIVE, readPackedRounds, type PackedRounds, type Seen } from "./replay-store.ts";
import { decodeState, encodeState, modelOfState, stateHash } from "../../forecasts/model/state.ts";
import { sumsFromJson, sumsToJson, type SumsJson } from "../../forecasts/accuracy/figures/sums-json.ts";
import { emptySums, mergeSums, type Sums } from "../../forecasts/accuracy/figures/sums.ts";
import type { Band } from "../../forecasts/model/table-model.ts";

/** A replay and its position. Its seqs are numbers of round ids if it runs in that order, see {@link Seen}. */
export interface Replay {
  tableId: number;
  colors: readonly string[];
  seen: Seen;
  backtest: Backtest;
  /** Sums by feature from before it was resumed. */
  before: Map<string, Sums>;
  /** First seq of the replay, and the last learned one. */
  beginSeq: bigint;
  seq: bigint;
  /** Rounds from `beginSeq` to `seq`, and how many of them are late. */
  rounds: bigint;
  lateRounds: bigint;
}

/** Stored form of the sums by feature, in the order of the features, and of the open windows and wait. */
export type SumsByFeature = { feature: string; sums: SumsJson }[];
export type CarryJson = {
  windows: { feature: string; rounds: number; left: number; p: number; base: number; hit: boolean }[];
  /** `state` is the state at the last occurrence of the top color, hex. */
  wait: { state: string; rounds: number } | null;
};

/** The stored state of a replay. */
export interface Snapshot extends Seen {
  beginSeq: bigint;
  toSeq: bigint;
  rounds: bigint;
  lateRounds: bigint;
  state: Buffer;
  stateHash: string;
  sums: unknown;
  carry: unknown;
}

/** The part of a table that a replay needs. */
export interface ReplayedTable {
  tableId: number;
  bands: readonly Band[];
  /** The model has other bands than the table, so the colors of rounds are recomputed. */
  hasOtherBands: boolean;
}

/** A replay with an empty state, from a seq on. */
export function startReplay(
  table: ReplayedTable,
  model: Model,
  beginSeq: bigint,
  { revisionId, revisedSeq, seenSeq }: Seen = AS_LIVE,
): Replay {
  const { tableId } = table;
  const colors = colorsOf(table, model);
  const backtest = startBacktest(model, colors);
  const seen = { revisionId, revisedSeq, seenSeq };
  const place = { before: new Map(), beginSeq, seq: beginSeq - 1n, rounds: 0n, lateRounds: 0n };
  return { tableId, colors, seen, backtest, ...place };
}

/**
 * Resumes a replay from its snapshot, with the same result as without a stop.
 *
 * @throws Error if a part of it is damaged
 */
export function resumeReplay(table: ReplayedTable, kept: Snapshot): Replay {
  const found = stateHash(kept.state);
  if (found !== kept.stateHash)
    throw new Error(`expected a model state with hash ${kept.stateHash}, found one with ${found}; it is damaged`);
  const model = modelOfState(kept.state);
  const replay = startReplay(table, model, kept.beginSeq, kept);
  const { windows, wait } = carryOf(kept.carry);
  const backtest = startBacktest(model, replay.colors, decodeState(model, kept.state));
  for (const { feature, p, base, ...rest } of windows) {
    const index = backtest.features.indexOf(feature) - 1;
    if (index < 0) throw new Error(`expected open windows of the table's colors, got ${feature}; calibrate again`);
    backtest.windows[index] = { ...rest, pPpm: p, basePpm: base };
  }
  if (wait !== null) {
    backtest.wait.state.memory.set(decodeState(model, Buffer.from(wait.state, "hex")).memory);
    backtest.wait.rounds = wait.rounds;
  }
  const { toSeq: seq, rounds, lateRounds } = kept;
  return { ...replay, backtest, before: sumsOf(kept.sums), seq, rounds, lateRounds };
}

/** The snapshot of a replay, which may continue. */
export function snapshotOf({ backtest, before, beginSeq, seq, rounds, lateRounds, seen }: Replay) {
  const { model } = backtest;
  const state = encodeState(model, backtest.state);
  const sums: SumsByFeature = [...backtestSums(backtest)].map(([feature, since]) => ({
    feature,
    sums: sumsToJson(mergeSums([before.get(feature) ?? emptySums(), since])),
  }));
  const carry: CarryJson = {
    windows: backtest.windows.flatMap((window, i) => {
      if (window === null) return [];
      const { pPpm: p, basePpm: base, ...rest } = window;
      return [{ feature: backtest.features[1 + i] ?? "", p, base, ...rest }];
    }),
    wait:
      backtest.wait.rounds === null
        ? null
        : { state: encodeState(model, backtest.wait.state).toString("hex"), rounds: backtest.wait.rounds },
  };
  return {
    model: model.name,
    ...seen,
    beginSeq,
    toSeq: seq,
    rounds,
    lateRounds,
    state,
    stateHash: stateHash(state),
    weights: Object.fromEntries(
      weights(model, backtest.state).map((weight, i): [string, number] => [EXPERTS[i] ?? `${i}`, weight]),
    ),
    sums,
    carry,
  };
}

/** Sums by feature from their JSON. @throws Error if they are damaged. */
export function sumsOf(json: unknown): Map<string, Sums> {
  const byFeature = parsed(
    z.array(z.strictObject({ feature: z.string(), sums: z.unknown() })),
    json,
    "sums of a calibration",
  );
  return new Map(byFeature.map(({ feature, sums }) => [feature, sumsFromJson(sums)]));
}

/** Receives each chunk and returns the listener of its forecasts. */
export type ChunkListener = (chunk: PackedRounds) => Listener & { round(index: number): void };

/**
 * Continues up to and including a seq, a chunk at a time. The next chunk is read while one is computed; `afterChunk` is
 * awaited. Ends early between two chunks if the signal is aborted, see `replay.seq`.
 */
export async function replayUpTo(
  sql: Queryable,
  replay: Replay,
  upToSeq: bigint,
  given: {
    roundsPerChunk: number;
    signal?: AbortSignal | undefined;
    listener?: ChunkListener | undefined;
    afterChunk?: ((rounds: number) => Promise<void>) | undefined;
  },
): Promise<void> {
  const { roundsPerChunk: limit, signal, listener, afterChunk } = given;
  const { tableId, seen, backtest } = replay;
  const { thresholds, x0Hundredths } = backtest.model;
  const view = { tableId, thresholds, seen, x0Hundredths };
  const read = (afterSeq: bigint) =>
    readPackedRounds(sql, view, { afterSeq, upToSeq, limit, named: listener !== undefined });
  let next = replay.seq < upToSeq ? read(replay.seq) : null;
  while (next !== null) {
    const chunk: PackedRounds = await next;
    const seq = chunk.readTo;
    next = seq >= upToSeq || signal?.aborted === true ? null : read(seq);
    next?.catch(() => undefined); // it is awaited in the next iteration, unless this one throws
    if (listener === undefined) advance(backtest, chunk.rounds);
    else advanceWithListener(backtest, chunk, listener(chunk));
    replay.seq = seq;
    replay.rounds += BigInt(chunk.rounds.length);
    replay.lateRounds += chunk.late;
    await afterChunk?.(chunk.rounds.length);
    if (signal?.aborted === true) break;
  }
  await next?.catch(() => undefined);
}

function advanceWithListener(backtest: Backtest, { rounds }: PackedRounds, listener: ReturnType<ChunkListener>): void {
  for (let i = 0; i < rounds.length; i++) {
    listener.round(i);
    advance(backtest, rounds.subarray(i, i + 1), listener);
  }
}

/** The table's colors; numbers if other bands are more or fewer. */
function colorsOf({ bands, hasOtherBands }: ReplayedTable, model: Model): string[] {
  if (!hasOtherBands || bands.length === model.colors) return bands.map(({ name }) => name);
  return Array.from({ length: model.colors }, (_, k) => `${k + 1}`);
}

const natural = z.int().nonnegative();
const carryJson = z.strictObject({
  windows: z.array(
    z.strictObject({
      feature: z.string(),
      rounds: natural,
      left: natural,
      p: natural,
      base: natural,
      hit: z.boolean(),
    }),
  ),
  wait: z.strictObject({ state: z.string().regex(/^(?:[0-9a-f]{2})+$/), rounds: natural }).nullable(),
});

/** The open windows and wait at the end of a replay. @throws Error if they are damaged. */
export function carryOf(json: unknown): CarryJson {
  return parsed(carryJson, json, "open windows of a calibration");
}

function parsed<Type>(schema: z.ZodType<Type>, json: unknown, what: string): Type {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  throw new Error(`expected the ${what}, got ${z.prettifyError(result.error)}; rebuild it by calibrate`);
}
