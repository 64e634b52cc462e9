import type { Sql, Transaction } from "../db/client.ts";
import { reasonOf } from "../errors.ts";
import { forecastHash, forecastStrings } from "./chain.ts";
import { forecastIdOf } from "./forecast-id.ts";
import {
  lockTablesToIssue,
  publishForecasts,
  readClock,
  saveForecasts,
  type LockedTable,
  type PreparedForecast,
  type PublishedForecast,
} from "./issue-store.ts";
import { emptyState, type State } from "./k7.ts";
import type { Model } from "./model.ts";
import { listRoundsToLearn, saveStates, type SeqRound } from "./model-store.ts";
import { K7_1 } from "./parameters.ts";
import { decodeState, encodeState, modelOfState, stateHash } from "./state.ts";
import { learnRounds, modelOf, nextColorOf } from "./table-model.ts";

/** What a run did. */
export interface Issued {
  learned: number;
  issued: number;
  /** Forecasts that the database refused since they could already be known; tried again after the next normalize. */
  refused: number;
  /** Rounds are left to learn. */
  unfinished: boolean;
  /** Tables that neither learned nor issued, since their state or a round of theirs is damaged. */
  damaged: { table: string; reason: string }[];
}

/** Rounds that one transaction learns, some 50 ms of work: nothing can be taken in meanwhile. */
const ROUNDS_PER_TRANSACTION = 5000;
/** A run ends after so many transactions and leaves the rest of a long import to the next, well within its time. */
const TRANSACTIONS_PER_RUN = 50;
const FEATURE = "next_color";

/**
 * Learns the new rounds of a house's tables and issues what follows from them, in transactions of at most 100 tables.
 *
 * A refusal by the database undoes neither what was learned nor the forecasts of other tables, and a damaged table
 * keeps no other from going on. `committed` is called after each transaction that changed what callers see.
 */
export async function issueForHouse(
  sql: Sql,
  house: string,
  { signal, committed }: { signal: AbortSignal; committed: () => void },
): Promise<Issued> {
  const total: Issued = { learned: 0, issued: 0, refused: 0, unfinished: false, damaged: [] };
  let afterTableId = 0;
  for (let turn = 0; turn < TRANSACTIONS_PER_RUN; turn++) {
    signal.throwIfAborted();
    const done = await issueForTables(sql, house, afterTableId);
    total.learned += done.learned;
    total.issued += done.issued;
    total.refused += done.refused;
    total.damaged.push(...done.damaged);
    total.unfinished ||= done.unfinished;
    if (done.learned > 0 || done.issued > 0) committed();
    if (done.lastTableId !== null) {
      afterTableId = done.lastTableId;
      continue;
    }
    if (!total.unfinished) return total;
    // all tables had their turn: once more from the first, for those with more rounds than one transaction learns
    afterTableId = 0;
    total.unfinished = false;
    total.damaged = [];
  }
  return { ...total, unfinished: true };
}

interface Done extends Issued {
  /** Where the next transaction goes on; null where no table was left. */
  lastTableId: number | null;
}

async function issueForTables(sql: Sql, house: string, afterTableId: number): Promise<Done> {
  return sql.begin(async (tx) => {
    const tables = await lockTablesToIssue(tx, { house, model: K7_1.name, afterTableId });
    const { learned, damaged } = await learnNewRounds(tx, tables);
    const ready = learned.filter(({ table, learnedSeq }) => table.mayIssue && learnedSeq === table.lastSeq);
    const issuedAt = ready.length === 0 ? "" : await readClock(tx);
    const prepared = ready.map((one) => prepare(one, issuedAt));
    const issued = await saveWhatStands(tx, prepared);
    await publishForecasts(
      tx,
      tables.map((table) => ({ tableId: table.tableId, forecast: shown(table, issued) })),
    );
    return {
      learned: learned.reduce((sum, { rounds }) => sum + rounds, 0),
      issued: issued.length,
      refused: prepared.length - issued.length,
      unfinished: learned.some(({ table, learnedSeq }) => learnedSeq < table.lastSeq),
      damaged,
      lastTableId: tables.at(-1)?.tableId ?? null,
    };
  });
}

interface LearnedTable {
  table: LockedTable;
  model: Model;
  state: State;
  learnedSeq: bigint;
  rounds: number;
}

async function learnNewRounds(
  tx: Transaction,
  tables: readonly LockedTable[],
): Promise<{ learned: LearnedTable[]; damaged: Issued["damaged"] }> {
  const behind = tables.filter(({ learnedSeq, lastSeq }) => learnedSeq < lastSeq);
  const limit = Math.ceil(ROUNDS_PER_TRANSACTION / Math.max(behind.length, 1));
  const spans = behind.map(({ tableId, learnedSeq, lastSeq }) => ({ tableId, afterSeq: learnedSeq, upToSeq: lastSeq }));
  const rounds = Map.groupBy(await listRoundsToLearn(tx, spans, limit), ({ tableId }) => tableId);
  const learned: LearnedTable[] = [];
  const damaged: Issued["damaged"] = [];
  for (const table of tables) {
    try {
      learned.push(learnTable(table, rounds.get(table.tableId) ?? [], limit));
    } catch (error) {
      damaged.push({ table: table.name, reason: reasonOf(error) });
    }
  }
  await saveStates(
    tx,
    learned
      .filter(({ table, learnedSeq }) => learnedSeq > table.learnedSeq)
      .map(({ table: { tableId }, model, state: memory, learnedSeq }) => {
        const state = encodeState(model, memory);
        return { tableId, model: model.name, learnedSeq, state, stateHash: stateHash(state) };
      }),
  );
  return { learned, damaged };
}

/** @throws Error where the state or a round is damaged: going on from it would be beyond anyone's recomputing. */
function learnTable(table: LockedTable, rounds: readonly SeqRound[], limit: number): LearnedTable {
  const { live } = table;
  if (live !== null && stateHash(live.state) !== live.stateHash) {
    throw new Error(
      `expected a model state with hash ${live.stateHash}, found one with ${stateHash(live.state)}; restore its bytes or rebuild it by calibrate`,
    );
  }
  // the saved state says which bands and edge it was made with: a later change of the file does not alter the model
  const model = live === null ? modelOf(table.bands, table.edge) : modelOfState(live.state);
  const state = live === null ? emptyState(model) : decodeState(model, live.state);
  learnRounds(model, state, table.bands, rounds);
  const learnedSeq = rounds.length < limit ? table.lastSeq : (rounds.at(-1)?.seq ?? table.lastSeq);
  return { table, model, state, learnedSeq, rounds: rounds.length };
}

function prepare({ table, model, state }: LearnedTable, issuedAt: string): PreparedForecast {
  if (table.newest === null) throw new Error(`expected a newest round of ${table.name} to forecast after, got none`);
  const { pPpm, basePpm } = nextColorOf(model, state);
  const seq = table.forecastSeq + 1n;
  const forecast = {
    tableId: table.tableId,
    seq,
    forecastId: forecastIdOf(table.tableId, seq),
    table: table.name,
    model: model.name,
    feature: FEATURE,
    issuedAt,
    cutoffSeq: table.newest.seq,
    cutoffRoundId: table.newest.roundId,
    historyHash: table.newest.historyHash,
    targetRoundId: table.consecutive ? String(BigInt(table.newest.roundId) + 1n) : null,
    horizon: 1,
    pPpm,
    basePpm,
    prevHash: table.forecastHash,
  };
  return { ...forecast, hash: forecastHash(forecast.prevHash, forecastStrings(forecast)) };
}

/** All at once where the database takes them, else table by table, so that one refusal costs only itself. */
async function saveWhatStands(tx: Transaction, prepared: PreparedForecast[]): Promise<PreparedForecast[]> {
  if (prepared.length === 0) return [];
  if (await saveForecasts(tx, prepared)) return prepared;
  if (prepared.length === 1) return [];
  const issued: PreparedForecast[] = [];
  for (const forecast of prepared) if (await saveForecasts(tx, [forecast])) issued.push(forecast);
  return issued;
}

function shown(table: LockedTable, issued: readonly PreparedForecast[]): PublishedForecast {
  const forecast = issued.find(({ tableId }) => tableId === table.tableId);
  const cutoff_seq = String(table.newest?.seq ?? 0n);
  if (forecast === undefined) return { cutoff_seq, next_color: null };
  const byColor = (ppm: readonly number[]) =>
    table.bands.map(({ name }, index): [string, number] => [name, ppm[index] ?? 0]);
  return {
    cutoff_seq,
    next_color: {
      forecast_id: forecast.forecastId,
      issued_at: forecast.issuedAt,
      after_round_id: forecast.cutoffRoundId,
      target_round_id: forecast.targetRoundId,
      model: forecast.model,
      p_ppm: byColor(forecast.pPpm),
      base_ppm: byColor(forecast.basePpm),
      hash: forecast.hash,
    },
  };
}
