import type { Queryable } from "../db/client.ts";
import { UsageError } from "../errors.ts";
import { findCalibration, type WholeCalibration } from "./calibration-store.ts";
import { figuresOf, type Figures } from "../forecasts/accuracy/figures/figures.ts";
import { addPairs, learnPacked, pairedFigures, pairRounds } from "./paired-loss.ts";
import { readTable } from "./promotion-store.ts";
import { startReplay, sumsOf, type Replay } from "./backtest/replay.ts";
import { listRevised, readPackedRounds } from "./backtest/replay-store.ts";
import { encodeState, modelOfState, stateHash } from "../forecasts/model/state.ts";
import type { Band } from "../forecasts/model/table-model.ts";

const ROUNDS_PER_CHUNK = 20_000;

/** One of the two records, with its figures over its rounds. */
export interface Compared {
  id: string;
  model: string;
  version: number;
  kind: string;
  from: string | null;
  to: string | null;
  rounds: number;
  state_hash: string;
  figures: { feature: string; figures: Figures }[];
}

/** Two records side by side, and the paired difference on the rounds that both cover. */
export interface Comparison {
  table: string;
  a: Compared;
  b: Compared;
  /** Losses in nats per round; `difference` is a minus b, below 0 if a is better. */
  paired: {
    from_seq: number;
    to_seq: number;
    rounds: number;
    a_log_loss: number;
    b_log_loss: number;
    difference: number;
    interval_95: [low: number, high: number] | null;
  };
}

/** Options of a comparison. */
export interface ComparisonWork {
  signal?: AbortSignal;
  progress?: (done: number, of: number) => void;
  /** Awaited after each chunk, with the progress in seqs. */
  afterChunk?: (done: number, of: number) => Promise<void>;
  /** Smaller in a process that has other work. */
  roundsPerChunk?: number;
}

/**
 * Compares two calibrations of a table.
 *
 * The losses are recomputed: both models are replayed from their first rounds and scored on the rounds that both cover.
 * Storing a loss per round and record would take more space than the rounds; and the replay also verifies the records,
 * since it must reach their states.
 *
 * @throws UsageError if the two cannot be compared: a missing record, different tables or bands, no common rounds
 * @throws Error if a replay does not reach the state of its record
 */
export async function compareCalibrations(
  sql: Queryable,
  [idA, idB]: [string, string],
  { signal, progress, afterChunk, roundsPerChunk = ROUNDS_PER_CHUNK }: ComparisonWork = {},
): Promise<Comparison> {
  const [a, b] = [await found(sql, idA), await found(sql, idB)];
  const [fromSeq, toSeq] = commonRange(a, b);
  const { bands } = await readTable(sql, a.tableId);
  const [sideA, sideB] = [sideOf(a, bands), sideOf(b, bands)];
  const beginSeq = a.beginSeq < b.beginSeq ? a.beginSeq : b.beginSeq;
  const reportProgress = async (seq: bigint) => {
    const [done, of] = [Number(seq - beginSeq + 1n), Number(toSeq - beginSeq + 1n)];
    progress?.(done, of);
    await afterChunk?.(done, of);
  };
  const readChunk = chunkReader(sql, roundsPerChunk);

  const learnTo = async (side: Replay, end: bigint) => {
    while (side.seq < end) {
      signal?.throwIfAborted();
      const { rounds, seq } = await readChunk(side, end);
      learnPacked({ ...side.backtest, rounds });
      side.seq = seq;
      await reportProgress(seq);
    }
  };
  let sums = { n: 0n, first: 0n, second: 0n, d: 0n, d2: 0n };
  const pairTo = async (end: bigint) => {
    while (sideA.seq < end) {
      signal?.throwIfAborted();
      const [first, second] = await Promise.all([readChunk(sideA, end), readChunk(sideB, end)]);
      sums = addPairs(
        sums,
        pairRounds({ ...sideA.backtest, rounds: first.rounds }, { ...sideB.backtest, rounds: second.rounds }),
      );
      sideA.seq = first.seq;
      sideB.seq = second.seq;
      await reportProgress(first.seq);
    }
  };
  for (const side of [sideA, sideB]) await learnTo(side, fromSeq - 1n);
  for (const seq of await listUnshared(sql, sideA, sideB)) {
    if (seq < fromSeq || seq > toSeq) continue;
    await pairTo(seq - 1n);
    for (const side of [sideA, sideB]) await learnTo(side, seq);
  }
  await pairTo(toSeq);
  for (const [record, side] of [[a, sideA] as const, [b, sideB] as const]) {
    if (record.toSeq === toSeq) requireState(record, side);
  }
  const paired = pairedFigures(sums);
  if (paired === null) throw new UsageError(`calibrations ${a.id} and ${b.id} have no on-time rounds in common`);
  const { first_log_loss: a_log_loss, second_log_loss: b_log_loss, ...rest } = paired;
  return {
    table: a.table,
    a: comparedOf(a),
    b: comparedOf(b),
    paired: { from_seq: Number(fromSeq), to_seq: Number(toSeq), ...rest, a_log_loss, b_log_loss },
  };
}

/** Throws if a replay of all rounds of a record did not reach its state. */
function requireState({ id, stateHash: expected }: WholeCalibration, { backtest }: Replay): void {
  const replayed = stateHash(encodeState(backtest.model, backtest.state));
  if (replayed === expected) return;
  throw new Error(
    `expected the rounds of calibration ${id} to give its state ${expected}, got ${replayed}; run verify`,
  );
}

async function found(sql: Queryable, id: string): Promise<WholeCalibration> {
  const row = await findCalibration(sql, id);
  if (row === null) throw new UsageError(`there is no calibration ${id}; \`calibration list\` shows them`);
  return row;
}

/**
 * The first and the last seq that both records cover.
 *
 * @throws UsageError if they cannot be compared: different tables or bands, replayed by round id, no common rounds
 */
export function commonRange(a: WholeCalibration, b: WholeCalibration): [fromSeq: bigint, toSeq: bigint] {
  if (a.tableId !== b.tableId)
    throw new UsageError(`calibration ${a.id} is of ${a.table} and ${b.id} of ${b.table}; compare two of one table`);
  const [bandsA, bandsB] = [a, b].map(({ state }) => modelOfState(state).thresholds.join("|"));
  if (bandsA !== bandsB)
    throw new UsageError(
      `calibrations ${a.id} and ${b.id} have different colors: bands from ${bandsA} and from ${bandsB}`,
    );
  const byId = [a, b].find(({ seenSeq }) => seenSeq !== null);
  if (byId !== undefined)
    throw new UsageError(
      `calibration ${byId.id} replayed rounds by id, including late ones; only records in the order taken can be compared round by round`,
    );
  const fromSeq = a.beginSeq > b.beginSeq ? a.beginSeq : b.beginSeq;
  const toSeq = a.toSeq < b.toSeq ? a.toSeq : b.toSeq;
  if (fromSeq <= toSeq) return [fromSeq, toSeq];
  const spans = [a, b].map((row) => `${row.id} covers rounds ${row.fromRoundId} to ${row.toRoundId}`);
  throw new UsageError(`calibrations ${a.id} and ${b.id} have no rounds in common: ${spans.join(", ")}`);
}

function sideOf(record: WholeCalibration, bands: readonly Band[]): Replay {
  const { tableId, otherBands, beginSeq, state } = record;
  return startReplay({ tableId, bands, hasOtherBands: otherBands }, modelOfState(state), beginSeq, record);
}

/** The rounds that only one of the two includes, or that the two read with different revisions. */
async function listUnshared(sql: Queryable, a: Replay, b: Replay): Promise<bigint[]> {
  const [ofA, ofB] = [await listRevised(sql, a), await listRevised(sql, b)];
  const seqs = new Set([...ofA.keys(), ...ofB.keys()]);
  return [...seqs].filter((seq) => ofA.get(seq) !== ofB.get(seq)).toSorted((x, y) => (x < y ? -1 : 1));
}

function chunkReader(sql: Queryable, limit: number) {
  return async (side: Replay, upToSeq: bigint): Promise<{ rounds: Uint8Array; seq: bigint }> => {
    const { tableId, seen, seq: afterSeq } = side;
    const { thresholds, x0Hundredths } = side.backtest.model;
    const { rounds, readTo } = await readPackedRounds(
      sql,
      { tableId, thresholds, seen, x0Hundredths },
      { afterSeq, upToSeq, limit, named: false },
    );
    return { rounds, seq: readTo };
  };
}

/** A record as one side of a comparison. */
export function comparedOf(row: WholeCalibration): Compared {
  return {
    id: row.id,
    model: row.model,
    version: row.version,
    kind: row.kind,
    from: row.fromRoundId,
    to: row.toRoundId,
    rounds: Number(row.rounds),
    state_hash: row.stateHash,
    figures: [...sumsOf(row.sums)].map(([feature, sums]) => ({ feature, figures: figuresOf(feature, sums) })),
  };
}
