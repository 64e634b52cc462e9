import type { PublishedReadingJson } from "../forecasts/readings/reading-state.ts";
import type { PublishedAccuracy } from "../forecasts/accuracy/published-store.ts";
import {
  addSets,
  type IssuedForecasts,
  NOTHING_ISSUED,
  publishedForecast,
  type PublishedForecast,
  type ReadSet,
} from "../forecasts/published-forecast.ts";
import { multiplierText } from "../rounds/round.ts";
import { holdReading } from "./held-readings.ts";
import { holdRounds, mergeRounds, NO_ROUNDS, type HeldRounds } from "./held-rounds.ts";
import type { RoundRow } from "./rounds-store.ts";
import type { CalibrationRow, HeadRow, HouseRow } from "./store.ts";

/** A house in memory. */
export interface House {
  readonly id: string;
  name: string;
  simulated: boolean;
  enabled: boolean;
  paused: boolean;
  /** Database time in milliseconds of the newest round that a poll received for any of its tables. */
  newestPolledMs: number | null;
}

/** A table in memory. */
export interface Table {
  readonly id: number;
  readonly house: House;
  readonly game: string;
  readonly market: string;
  position: number;
  /** Its place in the order in which all tables are listed. */
  place: number;
  enabled: boolean;
  resets: number;
  lastSeq: number;
  lastRoundAt: string | null;
  continuityText: string | null;
  /** Null before the first forecast. */
  published: PublishedForecast | null;
  calibration: CalibrationRow | null;
  reading: PublishedReadingJson | null;
  readingAt: number | null;
  /** Earlier readings, oldest first, of which public pages show one. */
  delayedReadings: readonly PublishedReadingJson[];
  /** When its head was last written. */
  generatedAt: string;
  lastPolledMs: number | null;
  /** The newest on-time round, held or not; null before the first. */
  newestSeq: number | null;
  /** The newest payloads had late rounds only. */
  isLate: boolean;
  /** In the order of feature, model (the live one last) and period. */
  accuracy: readonly PublishedAccuracy[];
  rounds: HeldRounds;
  /** The newest set that was read; earlier ones are read or ended. */
  setsUpTo: number;
  issued: IssuedForecasts;
  /** Versions of its head and of its accuracy. */
  headVersion: number;
  accuracyVersion: number;
  /** Increases with each change, so that JSON made from an earlier version is known to be stale. */
  version: number;
}

/** The accuracy of a table as read. */
export interface ReadAccuracy {
  version: number;
  /** The live model last. Null if a row is damaged: the held rows stay. */
  rows: readonly PublishedAccuracy[] | null;
}

/** The result of one read of the database; applied in one step, so that no request sees half of it. */
export interface Reading {
  /** Null when they were not read this time. */
  houses: readonly HouseRow[] | null;
  heads: readonly HeadRow[];
  /** New sets by table, in the order of their cutoffs. */
  sets: ReadonlyMap<number, readonly ReadSet[]>;
  /** Tables whose held data is discarded. */
  replaced: ReadonlySet<number>;
  /** By table; they replace the rounds of a replaced table, and are added to those of another. */
  rounds: ReadonlyMap<number, HeldRounds>;
  /** All accuracy of tables, with its version. */
  accuracy: ReadonlyMap<number, ReadAccuracy>;
}

/** All houses and tables in memory, with their indexes. Only {@link applyReading} changes it. */
export interface Holding {
  readonly houses: Map<string, House>;
  readonly byId: Map<number, Table>;
  /** In the order in which they are listed: house id, then the place in the houses file. */
  readonly tables: Table[];
  readonly byHouse: Map<string, Table[]>;
  readonly byGame: Map<string, Table[]>;
  readonly byMarket: Map<string, Table[]>;
  /** A new object each time the lists are rebuilt. */
  listing: object;
}

/** An empty holding. */
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

/** Applies a read; at most `bufferRounds` rounds are held per table, late ones in their sorted place. */
export function applyReading(holding: Holding, reading: Reading, bufferRounds: number): void {
  if (reading.houses !== null) applyHouses(holding, reading.houses);
  let isReordered = false;
  const setBack = new Set<House>();
  for (const row of reading.heads) {
    const held = holding.byId.get(row.id);
    if (held !== undefined && (held.lastPolledMs ?? 0) > (row.lastPolledMs ?? 0)) setBack.add(held.house);
    isReordered = applyHead(holding, row, reading, bufferRounds) || isReordered;
  }
  for (const [id, { version, rows }] of reading.accuracy) {
    const table = holding.byId.get(id);
    if (table === undefined) continue; // created after the heads were read; the next read brings both
    if (rows !== null) table.accuracy = rows.toSorted((a, b) => compare(a.feature, b.feature));
    table.accuracyVersion = version;
    table.version += 1;
  }
  if (isReordered) index(holding);
  for (const house of setBack) house.newestPolledMs = newestPolledMs(holding.byHouse.get(house.id) ?? []);
}

/** Of all tables: the time of one goes back after the database's clock was ahead and was set back. */
function newestPolledMs(tables: readonly Table[]): number | null {
  let newest: number | null = null;
  for (const { lastPolledMs } of tables) {
    if (lastPolledMs !== null) newest = Math.max(newest ?? 0, lastPolledMs);
  }
  return newest;
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

/** True when the lists of tables must be rebuilt. */
function applyHead(holding: Holding, row: HeadRow, { sets, replaced, rounds }: Reading, bufferRounds: number): boolean {
  const house = holding.houses.get(row.house);
  if (house === undefined) throw new Error(`expected the house ${row.house} to be read before its tables`);
  if (row.lastPolledMs !== null) house.newestPolledMs = Math.max(house.newestPolledMs ?? 0, row.lastPolledMs);
  const held = holding.byId.get(row.id);
  const kept = held === undefined || replaced.has(row.id) ? EMPTY : held;
  const own = sets.get(row.id) ?? [];
  const issued = addSets(kept.issued, own);
  const brought = rounds.get(row.id);
  const reading = row.readingAt === null ? null : (row.reading ?? held?.reading ?? null);
  const changing = {
    position: row.position,
    enabled: row.enabled,
    resets: row.resets,
    lastSeq: row.lastSeq,
    lastRoundAt: row.lastRoundAt,
    continuityText: row.continuityText,
    published: publishedForecast(row, issued),
    calibration: row.calibration,
    reading,
    readingAt: row.readingAt,
    delayedReadings: reading === null ? [] : holdReading(held?.delayedReadings ?? [], held?.reading ?? null, reading),
    generatedAt: row.changedAt,
    lastPolledMs: row.lastPolledMs,
    newestSeq: row.newestSeq,
    isLate: row.isLate,
    rounds: brought === undefined ? kept.rounds : mergeRounds(kept.rounds, brought, bufferRounds),
    setsUpTo: own.at(-1)?.cutoffSeq ?? kept.setsUpTo,
    issued,
    headVersion: row.version,
    version: (held?.version ?? 0) + 1,
  };
  if (held !== undefined) {
    const isMoved = held.position !== row.position;
    Object.assign(held, changing);
    return isMoved;
  }
  const { id, game, market } = row;
  holding.byId.set(id, { id, house, game, market, place: 0, accuracy: [], accuracyVersion: -1, ...changing });
  return true;
}

const EMPTY = { issued: NOTHING_ISSUED, rounds: NO_ROUNDS, setsUpTo: 0 };

/**
 * Converts rows into the held form immediately, because two million rows would not fit into memory. `colors` are the
 * names of a palette's colors.
 */
export function holdRows(
  rows: readonly RoundRow[],
  colors: ReadonlyMap<number, readonly string[]>,
): [number, HeldRounds][] {
  return [...Map.groupBy(rows, ({ tableId }) => tableId)].map(([id, own]) => [
    id,
    holdRounds(
      own.map((row) => {
        const color = colors.get(row.palette)?.[row.color] ?? "";
        return { order: row.order, seq: row.seq, json: roundJson(row, color) };
      }),
    ),
  ]);
}

function roundJson(row: RoundRow, color: string): string {
  const { roundId, hundredths, occurredAt, receivedAt, verified, late } = row;
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
