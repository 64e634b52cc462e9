import { multiplierText } from "../rounds/round.ts";
import type { PublishedForecast } from "../forecasts/issue/published-forecast.ts";
import { holdRounds, mergeRounds, NO_ROUNDS, type HeldRounds } from "./held-rounds.ts";
import type { AccuracyMark, AccuracyRow, HouseRow, RoundRow, TableRow } from "./store.ts";

/** A house as it is held in memory. */
export interface House {
  readonly id: string;
  name: string;
  simulated: boolean;
  enabled: boolean;
  paused: boolean;
  /** Database time in milliseconds of the newest round that a poll brought for any of its tables. */
  newestPolledMs: number | null;
}

/** Rounds that were read of one table. */
export interface BroughtRounds {
  rounds: HeldRounds;
  /** The newest on-time one of them; null where all are late. */
  newestSeq: number | null;
}

/** A table as it is held in memory. */
export interface Table {
  readonly id: number;
  readonly house: House;
  readonly game: string;
  readonly market: string;
  position: number;
  /** Its place in the order in which all tables are listed. */
  place: number;
  enabled: boolean;
  lastSeq: number;
  lastRoundAt: string | null;
  continuityText: string | null;
  published: PublishedForecast | null;
  calibration: TableRow["calibration"];
  reading: TableRow["reading"];
  /** When what is published of it was last written. */
  generatedAt: string;
  lastPolledMs: number | null;
  /** The newest on-time round, held or not; null before the first. */
  newestSeq: number | null;
  /** In the order of feature, model and period. */
  accuracy: AccuracyRow[];
  rounds: HeldRounds;
  /** Grows with each change, so that what was made of it before is known to be old. */
  version: number;
}

/** What one look into the database brought; applied at once, so that no request sees half of it. */
export interface Reading {
  /** Null where they were not read this time. */
  houses: readonly HouseRow[] | null;
  tables: readonly TableRow[];
  /** Rounds to be added to what is held of their tables, by table. */
  newRounds: ReadonlyMap<number, BroughtRounds>;
  /** Rounds that replace what is held of their tables, by table. */
  newestRounds: ReadonlyMap<number, BroughtRounds>;
  /** The tables whose rounds are replaced, and the newest on-time round of each, held or not. */
  newestOnTime: ReadonlyMap<number, number | null>;
  accuracy: readonly AccuracyRow[];
}

/** All houses and tables in memory, with the ways to find them. Only {@link applyReading} changes it. */
export interface Holding {
  readonly houses: Map<string, House>;
  readonly byId: Map<number, Table>;
  /** In the order in which they are listed: house id, then the place in the houses file. */
  readonly tables: Table[];
  readonly byHouse: Map<string, Table[]>;
  readonly byGame: Map<string, Table[]>;
  readonly byMarket: Map<string, Table[]>;
  /** Another one each time the lists are made anew. */
  listing: object;
}

/** Nothing yet. */
export function emptyHolding(): Holding {
  return {
    houses: new Map(),
    byId: new Map(),
    tables: [],
    byHouse: new Map(),
    byGame: new Map(),
    byMarket: new Map(),
    listing: {},
  };
}

/** What is held of a table's accuracy of this model, feature and period. */
export function heldAccuracy(table: Table | undefined, of: Omit<AccuracyMark, "tableId" | "writtenAt">) {
  return table?.accuracy.find(
    ({ model, feature, period }) => model === of.model && feature === of.feature && period === of.period,
  );
}

/** Brings what is held up to date; at most `bufferRounds` rounds are held per table, late ones in their sorted place. */
export function applyReading(holding: Holding, reading: Reading, bufferRounds: number): void {
  if (reading.houses !== null) applyHouses(holding, reading.houses);
  let isReordered = false;
  for (const row of reading.tables) isReordered = applyTable(holding, row, reading.newestOnTime) || isReordered;
  for (const [id, brought] of reading.newestRounds) hold(holding, id, brought, bufferRounds);
  for (const [id, brought] of reading.newRounds) hold(holding, id, brought, bufferRounds);
  for (const row of reading.accuracy) holdAccuracy(holding, row);
  if (isReordered) index(holding);
}

function applyHouses(holding: Holding, rows: readonly HouseRow[]): void {
  const disabled = new Set(rows.flatMap(({ disabledTables }) => disabledTables));
  for (const { disabledTables: _, ...row } of rows) {
    const house = holding.houses.get(row.id);
    if (house === undefined) holding.houses.set(row.id, { ...row, newestPolledMs: null });
    else Object.assign(house, row);
  }
  for (const table of holding.tables) table.enabled = !disabled.has(table.id);
}

/** True where the lists of tables must be made again. */
function applyTable(holding: Holding, row: TableRow, newestOnTime: Reading["newestOnTime"]): boolean {
  const house = holding.houses.get(row.house);
  if (house === undefined) throw new Error(`expected the house ${row.house} to be read before its tables`);
  if (row.lastPolledMs !== null) house.newestPolledMs = Math.max(house.newestPolledMs ?? 0, row.lastPolledMs);
  const { id, game, market, ...changing } = pick(row);
  const replacing = newestOnTime.get(id);
  const table = holding.byId.get(id);
  if (table === undefined) {
    const own = { place: 0, newestSeq: replacing ?? null, accuracy: [], rounds: NO_ROUNDS, version: 0 };
    holding.byId.set(id, { id, house, game, market, ...changing, ...own });
    return true;
  }
  const isMoved = table.position !== changing.position;
  // every write of what is published moves its time
  if (isMoved || table.generatedAt !== changing.generatedAt || replacing !== undefined) {
    Object.assign(table, changing, { version: table.version + 1 });
  }
  if (replacing !== undefined) Object.assign(table, { rounds: NO_ROUNDS, newestSeq: replacing });
  return isMoved;
}

function pick({ house: _house, roundIds: _roundIds, ...row }: TableRow) {
  return row;
}

/** Makes of rows what is held of them: at once, since two million rows of the database would not fit beside each other. */
export function readRounds(rows: readonly RoundRow[]): [number, BroughtRounds][] {
  return [...Map.groupBy(rows, ({ tableId }) => tableId)].map(([id, own]) => {
    const rounds = holdRounds(own.map((row) => ({ order: row.order, seq: row.seq, json: roundJson(row) })));
    const newestSeq = own.reduce((newest, { late, seq }) => (late ? newest : Math.max(newest, seq)), -Infinity);
    return [id, { rounds, newestSeq: newestSeq === -Infinity ? null : newestSeq }];
  });
}

function hold({ byId }: Holding, id: number, { rounds, newestSeq }: BroughtRounds, bufferRounds: number): void {
  const table = byId.get(id);
  if (table === undefined) throw new Error(`expected the table ${id} to be read before its rounds`);
  table.rounds = mergeRounds(table.rounds, rounds, bufferRounds);
  if (newestSeq !== null) table.newestSeq = Math.max(table.newestSeq ?? 0, newestSeq);
}

function holdAccuracy({ byId }: Holding, row: AccuracyRow): void {
  const table = byId.get(row.tableId);
  if (table === undefined) return; // made since the tables were read: the next look brings both
  const before = heldAccuracy(table, row);
  table.accuracy = [...table.accuracy.filter((held) => held !== before), row].toSorted(
    (a, b) => compare(a.feature, b.feature) || compare(a.model, b.model) || compare(a.period, b.period),
  );
  table.version += 1;
}

function roundJson(row: RoundRow): string {
  const { roundId, hundredths, color, occurredAt, receivedAt, verified, late } = row;
  const [id, shade, occurred, received] = [roundId, color, occurredAt, receivedAt].map((text) => JSON.stringify(text));
  return [
    `{"round_id":${id}`,
    `"multiplier":${multiplierText(hundredths)}`,
    `"color":${shade}`,
    `"occurred_at":${occurred}`,
    `"received_at":${received}`,
    `"verified":${verified}`,
    `"late":${late}}`,
  ].join(",");
}

function index(holding: Holding): void {
  const { byId, tables, byHouse, byGame, byMarket } = holding;
  holding.listing = {};
  const inOrder = [...byId.values()].toSorted(
    (a, b) => compare(a.house.id, b.house.id) || a.position - b.position || a.id - b.id,
  );
  tables.length = 0;
  for (const table of inOrder) {
    table.place = tables.length;
    tables.push(table);
  }
  const lists = [
    [byHouse, (table: Table) => table.house.id],
    [byGame, (table: Table) => table.game],
    [byMarket, (table: Table) => table.market],
  ] as const;
  for (const [list, keyOf] of lists) {
    list.clear();
    for (const [key, of] of Map.groupBy(inOrder, keyOf)) list.set(key, of);
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
