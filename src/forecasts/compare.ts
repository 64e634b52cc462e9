import type { Queryable } from "../db/client.ts";
import { UsageError } from "../errors.ts";
import { findCalibration, type WholeCalibration } from "./calibration-store.ts";
import { figuresOf, type Figures } from "./figures.ts";
import { addPairs, learnPacked, pairedFigures, pairRounds } from "./paired-loss.ts";
import { readTable } from "./promotion-store.ts";
import { startReplay, sumsOf, type Replay } from "./replay.ts";
import { readPackedRounds } from "./replay-store.ts";
import { encodeState, modelOfState, stateHash } from "./state.ts";
import type { Band } from "./table-model.ts";

const ROUNDS_PER_CHUNK = 20_000;

/** One of the two records: what it is, and its figures over its own rounds. */
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
  /** Losses in nats per round; `difference` is a minus b, below 0 where a is better. */
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

/**
 * Compares two calibrations of a table.
 *
 * The pairs are made anew: both models learn from where each began and are judged on the rounds that both cover. To keep
 * a loss for every round of every record would cost more than the rounds themselves, and this way the comparison also
 * proves the records: a replay that comes to the end of one must give its state.
 *
 * @throws UsageError where the two cannot be compared: no such record, other tables, other bands, no common rounds
 * @throws Error where a replay does not give the state of its record
 */
export async function compareCalibrations(
  sql: Queryable,
  [idA, idB]: [string, string],
  { signal, progress }: { signal?: AbortSignal; progress?: (done: number, of: number) => void } = {},
): Promise<Comparison> {
  const [a, b] = [await found(sql, idA), await found(sql, idB)];
  const [fromSeq, toSeq] = commonRange(a, b);
  const { bands } = await readTable(sql, a.tableId);
  const [sideA, sideB] = [sideOf(a, bands), sideOf(b, bands)];
  const beginSeq = a.beginSeq < b.beginSeq ? a.beginSeq : b.beginSeq;
  const tell = (seq: bigint) => progress?.(Number(seq - beginSeq + 1n), Number(toSeq - beginSeq + 1n));

  for (const side of [sideA, sideB]) {
    while (side.seq < fromSeq - 1n) {
      signal?.throwIfAborted();
      const { rounds, seq } = await readChunk(sql, side, fromSeq - 1n);
      learnPacked({ ...side.backtest, rounds });
      side.seq = seq;
      tell(seq);
    }
  }
  let sums = { n: 0n, first: 0n, second: 0n, d: 0n, d2: 0n };
  while (sideA.seq < toSeq) {
    signal?.throwIfAborted();
    const [first, second] = await Promise.all([readChunk(sql, sideA, toSeq), readChunk(sql, sideB, toSeq)]);
    sums = addPairs(
      sums,
      pairRounds({ ...sideA.backtest, rounds: first.rounds }, { ...sideB.backtest, rounds: second.rounds }),
    );
    sideA.seq = first.seq;
    sideB.seq = second.seq;
    tell(first.seq);
  }
  for (const [record, { backtest }] of [[a, sideA] as const, [b, sideB] as const]) {
    const replayed = stateHash(encodeState(backtest.model, backtest.state));
    if (record.toSeq === toSeq && replayed !== record.stateHash)
      throw new Error(
        `expected the rounds of calibration ${record.id} to give its state ${record.stateHash}, got ${replayed}; run verify`,
      );
  }
  const paired = pairedFigures(sums);
  if (paired === null) throw new UsageError(`calibrations ${a.id} and ${b.id} have no on-time rounds in common`);
  const { first_log_loss, second_log_loss, ...rest } = paired;
  return {
    table: a.table,
    a: comparedOf(a),
    b: comparedOf(b),
    paired: {
      from_seq: Number(fromSeq),
      to_seq: Number(toSeq),
      ...rest,
      a_log_loss: first_log_loss,
      b_log_loss: second_log_loss,
    },
  };
}

async function found(sql: Queryable, id: string): Promise<WholeCalibration> {
  const row = await findCalibration(sql, id);
  if (row === null) throw new UsageError(`there is no calibration ${id}; \`calibration list\` shows them`);
  return row;
}

function commonRange(a: WholeCalibration, b: WholeCalibration): [fromSeq: bigint, toSeq: bigint] {
  if (a.tableId !== b.tableId)
    throw new UsageError(`calibration ${a.id} is of ${a.table} and ${b.id} of ${b.table}; compare two of one table`);
  const [bandsA, bandsB] = [a, b].map(({ state }) => modelOfState(state).thresholds.join("|"));
  if (bandsA !== bandsB)
    throw new UsageError(`calibrations ${a.id} and ${b.id} see other colors: bands from ${bandsA} and from ${bandsB}`);
  const fromSeq = a.beginSeq > b.beginSeq ? a.beginSeq : b.beginSeq;
  const toSeq = a.toSeq < b.toSeq ? a.toSeq : b.toSeq;
  if (fromSeq <= toSeq) return [fromSeq, toSeq];
  const spans = [a, b].map((row) => `${row.id} covers rounds ${row.fromRoundId} to ${row.toRoundId}`);
  throw new UsageError(`calibrations ${a.id} and ${b.id} have no rounds in common: ${spans.join(", ")}`);
}

function sideOf({ tableId, otherBands, beginSeq, state }: WholeCalibration, bands: readonly Band[]): Replay {
  return startReplay({ tableId, bands, hasOtherBands: otherBands }, modelOfState(state), beginSeq);
}

async function readChunk(sql: Queryable, side: Replay, upToSeq: bigint): Promise<{ rounds: Uint8Array; seq: bigint }> {
  const { tableId, colors, thresholds, seq: afterSeq } = side;
  const { rounds, lastSeq } = await readPackedRounds(
    sql,
    { tableId, colors, thresholds, x0Hundredths: side.backtest.model.x0Hundredths },
    { afterSeq, upToSeq, limit: ROUNDS_PER_CHUNK, named: false },
  );
  return { rounds, seq: rounds.length < ROUNDS_PER_CHUNK || lastSeq === null ? upToSeq : lastSeq };
}

function comparedOf(row: WholeCalibration): Compared {
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
