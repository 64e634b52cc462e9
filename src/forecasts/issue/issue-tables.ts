import type { Transaction } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import { isWindow, NEXT_COLOR } from "../model/features.ts";
import { publishForecasts, readClock, saveForecasts, type PreparedForecast } from "./issue-store.ts";
import { type LockedTable } from "./tables-to-issue-store.ts";
import { windowFeatures } from "./issue-windows.ts";
import { emptyState, type State } from "../model/k7.ts";
import type { Model } from "../model/model.ts";
import { listRoundsToLearn, saveStates, type SeqRound } from "../model/model-store.ts";
import { prepareForecasts } from "./prepare-forecasts.ts";
import { publishedNextColor, publishedWindows, type PublishedForecast } from "./published-forecast.ts";
import { learnReadings, type TableToRead } from "../readings/readings.ts";
import { decodeState, encodeState, modelOfState, stateHash } from "../model/state.ts";
import { learnRounds, modelOf } from "../model/table-model.ts";
import { listOpenWindows, type OpenWindow } from "./window-store.ts";

/** What one transaction did with a table. */
export interface IssuedTable {
  table: LockedTable;
  /** Rounds that were learned. */
  learned: number;
  /** In the order of the chain; none where nothing may be said now. */
  issued: readonly PreparedForecast[];
  /** Its forecasts could already be known: an answer is not read yet, or the database refused them. */
  isRefused: boolean;
  /** Rounds are left to learn or to read. */
  isUnfinished: boolean;
  /** Why it neither learned nor issued: its state or a round of it is damaged. */
  damaged: string | null;
  /** Why its reading stayed as it was: what that rests on is damaged. */
  unread: string | null;
}

/** Rounds that one transaction learns, some 50 ms of work: nothing can be taken in meanwhile. */
const ROUNDS_PER_TRANSACTION = 5000;
/**
 * Forecasts that share a time and a statement, but for those of one table, which are never parted. Each is checked by
 * the database, which refuses what is stored a second after its time.
 */
const FORECASTS_PER_CHUNK = 100;

/**
 * Learns the new rounds of tables whose locks are held, and issues and shows what follows from them.
 *
 * A refusal by the database undoes neither what was learned nor the forecasts of other tables, and a damaged table
 * keeps no other from going on.
 */
export async function issueForTables(tx: Transaction, tables: readonly LockedTable[]): Promise<IssuedTable[]> {
  const { learned, damaged } = await learnNewRounds(tx, tables);
  const upToDate = learned.filter(({ table, learnedSeq }) => learnedSeq === table.lastSeq);
  const open = await openWindows(tx, upToDate);
  const wanted = upToDate.filter(({ table }) => table.mayIssue);
  // the database looks again; one that it refuses costs all that share a statement with it
  const ready = wanted.filter(({ table }) => !table.hasUnread);
  const issued = await issueInChunks(tx, ready, open);
  const readable = new Set(learned.map(({ table }) => table));
  await publishForecasts(tx, [
    ...upToDate.map((one) => ({
      tableId: one.table.tableId,
      forecast: shown(one, open.get(one.table.tableId), issued.get(one.table.tableId) ?? []),
    })),
    // of a damaged state nobody knows the chances now; a table with rounds left to learn is shown once it has learned them
    ...tables
      .filter((table) => !readable.has(table))
      .map(({ tableId, newest }) => ({
        tableId,
        forecast: { cutoff_seq: String(newest?.seq ?? 0n), next_color: null, windows: [] },
      })),
  ]);
  const readings = await learnReadings(tx, learned.map(toRead), ROUNDS_PER_TRANSACTION);
  const byTable = new Map(learned.map((one) => [one.table, one]));
  const offered = new Set(wanted.map(({ table }) => table));
  return tables.map((table) => {
    const own = byTable.get(table);
    const stands = issued.get(table.tableId);
    return {
      table,
      learned: own?.rounds ?? 0,
      issued: stands ?? [],
      isRefused: offered.has(table) && stands === undefined,
      isUnfinished: readings.unfinished.has(table.tableId) || (own !== undefined && own.learnedSeq < table.lastSeq),
      damaged: damaged.get(table) ?? null,
      unread: readings.damaged.get(table.tableId) ?? null,
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
): Promise<{ learned: LearnedTable[]; damaged: Map<LockedTable, string> }> {
  const behind = tables.filter(({ learnedSeq, lastSeq }) => learnedSeq < lastSeq);
  const limit = Math.ceil(ROUNDS_PER_TRANSACTION / Math.max(behind.length, 1));
  const spans = behind.map(({ tableId, learnedSeq, lastSeq }) => ({ tableId, afterSeq: learnedSeq, upToSeq: lastSeq }));
  const rounds = Map.groupBy(await listRoundsToLearn(tx, spans, limit), ({ tableId }) => tableId);
  const learned: LearnedTable[] = [];
  const damaged = new Map<LockedTable, string>();
  for (const table of tables) {
    try {
      learned.push(learnTable(table, rounds.get(table.tableId) ?? [], limit));
    } catch (error) {
      damaged.set(table, reasonOf(error));
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

function toRead({ table, model, state, learnedSeq }: LearnedTable): TableToRead {
  const { tableId, consecutive, edge, lastSeq } = table;
  const colors = table.bands.map((band) => band.name);
  return { tableId, consecutive, colors, model, state, edge, learnedSeq, lastSeq };
}

/** The windows of each table that have not ended, by feature. */
type OpenWindows = Map<number, Map<string, OpenWindow>>;

async function openWindows(tx: Transaction, tables: readonly LearnedTable[]): Promise<OpenWindows> {
  const asked = tables.flatMap(({ table: { tableId, bands, forecastSeq }, model: { name: model } }) =>
    forecastSeq === 0n ? [] : [{ tableId, model, features: windowFeatures(bands).map(({ feature }) => feature) }],
  );
  const windows = Map.groupBy(await listOpenWindows(tx, asked), ({ tableId }) => tableId);
  return new Map(
    [...windows].map(([tableId, own]) => [tableId, new Map(own.map((window) => [window.feature, window]))]),
  );
}

/** Issues what follows for each table, some tables at a time, and returns what stands by table. */
async function issueInChunks(
  tx: Transaction,
  ready: readonly LearnedTable[],
  open: OpenWindows,
): Promise<Map<number, PreparedForecast[]>> {
  const issued = new Map<number, PreparedForecast[]>();
  for (let next = 0; next < ready.length;) {
    const prepare = await preparing(tx, open);
    const chunk: PreparedForecast[][] = [];
    for (let size = 0; next < ready.length && size < FORECASTS_PER_CHUNK; next++) {
      const forecasts = prepare(ready[next]!);
      chunk.push(forecasts);
      size += forecasts.length;
    }
    const tables = ready.slice(next - chunk.length, next);
    for (const forecasts of await saveWhatStands(tx, tables, chunk, open)) {
      for (const { tableId } of forecasts.slice(0, 1)) issued.set(tableId, forecasts);
    }
  }
  return issued;
}

/** Prepares what follows for tables, issued now. */
async function preparing(tx: Transaction, open: OpenWindows): Promise<(table: LearnedTable) => PreparedForecast[]> {
  const issuedAt = await readClock(tx);
  return (table) => prepareForecasts(table, open.get(table.table.tableId) ?? NONE_OPEN, issuedAt);
}

const NONE_OPEN: ReadonlyMap<string, OpenWindow> = new Map();

/**
 * All at once where the database takes them, else table by table, so that one refusal costs only itself. Each has a time of
 * its own then: that of the chunk may be what it was refused for.
 */
async function saveWhatStands(
  tx: Transaction,
  tables: readonly LearnedTable[],
  chunk: PreparedForecast[][],
  open: OpenWindows,
): Promise<PreparedForecast[][]> {
  if (await saveForecasts(tx, chunk.flat())) return chunk;
  const issued: PreparedForecast[][] = [];
  for (const table of tables) {
    const prepare = await preparing(tx, open);
    const forecasts = prepare(table);
    if (await saveForecasts(tx, forecasts)) issued.push(forecasts);
  }
  return issued;
}

function shown(
  { table, model, state }: LearnedTable,
  before: ReadonlyMap<string, OpenWindow> = NONE_OPEN,
  issued: readonly PreparedForecast[],
): PublishedForecast {
  const nextColor = issued.find(({ feature }) => feature === NEXT_COLOR);
  const open = new Map(before);
  for (const forecast of issued) {
    if (isWindow(forecast.feature)) open.set(forecast.feature, { ...forecast, seen: 0, hit: false });
  }
  return {
    cutoff_seq: String(table.newest?.seq ?? 0n),
    next_color: nextColor === undefined ? null : publishedNextColor(table.bands, nextColor),
    windows: publishedWindows(model, state, table.bands, open),
  };
}
