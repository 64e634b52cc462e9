import type { HouseEntry } from "./load.ts";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { Problem } from "../errors.ts";

/** Tables requested together by one poll of a house; more are split. */
const TABLES_PER_SHARD = 100;

/** A stored band: its upper bound in hundredths, null for the last. */
interface StoredColor {
  name: string;
  below: number | null;
}

/** A table in the database before the file is applied. */
export interface KnownTable {
  id: number;
  house: string;
  game: string;
  market: string;
  round_ids: string;
  colors: StoredColor[];
  pause_ms: number;
  hasRounds: boolean;
  settings: Record<string, unknown>;
  baseUrl: string | null;
  enabled: boolean;
  position: number;
  shard: number;
}

/** A house or table to store. */
interface HouseRow {
  id: string;
  name: string;
  base_url: string | null;
  settings: Record<string, unknown>;
  demo: boolean;
  simulated: boolean;
  enabled: boolean;
  poll_every_ms: number;
}
interface TableRow {
  house_id: string;
  game: string;
  market: string;
  position: number;
  shard: number;
  enabled: boolean;
  settings: Record<string, unknown>;
  round_ids: string;
  pause_ms: number;
  colors: StoredColor[];
}

/** The changes that a houses file makes. */
interface Changes {
  houses: HouseRow[];
  tables: TableRow[];
  /**
   * Ids of tables with another feed or kind of round ids than before, of tables that are enabled again, and of those in
   * another shard: they may not have read the newest response of their feed, so nothing that was stored of it applies, nor
   * does a 304.
   */
  newFeeds: number[];
  /** Ids of tables at another position of their house: processes that show tables read them again. */
  moved: number[];
  /** Ids of stored tables whose head may change: another position, feed, palette, pause or other setting than before. */
  changed: number[];
  problems: Problem[];
}

/**
 * Computes the changes that a houses file makes. The colors and the kind of round ids of a table are fixed once it has
 * rounds, because every forecast and every measured figure depends on them; `problems` has each table that violates
 * this.
 */
export function changesOf(entries: readonly HouseEntry[], known: readonly KnownTable[]): Changes {
  const changes: Changes = { houses: [], tables: [], newFeeds: [], moved: [], changed: [], problems: [] };
  const before = new Map(known.map((table) => [nameOf(table.house, table), table]));
  entries.forEach(({ settings, entry }, houseAt) => {
    changes.houses.push({
      id: settings.id,
      name: settings.name,
      base_url: textOrNull(entry["base_url"]),
      settings: entry,
      demo: settings.demo,
      simulated: settings.simulated,
      enabled: settings.enabled,
      poll_every_ms: settings.poll_every_ms,
    });
    const own = tableEntries.parse(entry["tables"]);
    settings.tables.forEach((table, position) => {
      const row: TableRow = {
        house_id: settings.id,
        game: table.game,
        market: table.market,
        position,
        shard: Math.floor(position / TABLES_PER_SHARD),
        enabled: table.enabled,
        settings: own[position] ?? {},
        round_ids: table.round_ids,
        pause_ms: table.pause_ms,
        colors: table.colors.map(({ name, below }) => ({
          name,
          below: below === undefined ? null : Math.round(below * 100),
        })),
      };
      changes.tables.push(row);
      const old = before.get(nameOf(settings.id, table));
      if (old === undefined) return;
      const fixed = fixedProblems(row, old, `houses[${houseAt}].tables[${position}]`);
      if (old.hasRounds) changes.problems.push(...fixed);
      const isElsewhere = row.shard !== old.shard || (row.enabled && !old.enabled);
      const isNewFeed =
        isElsewhere || !isSameFeed(row, old, settings.demo ? old.baseUrl : textOrNull(entry["base_url"]));
      if (isNewFeed) changes.newFeeds.push(old.id);
      const isMoved = row.position !== old.position;
      if (isMoved) changes.moved.push(old.id);
      const isOther = row.pause_ms !== old.pause_ms || !isDeepStrictEqual(row.settings, old.settings);
      if (isNewFeed || isMoved || isOther || fixed.length > 0) changes.changed.push(old.id);
    });
  });
  return changes;
}

/** What changed that is fixed once the table has rounds. */
function fixedProblems(row: TableRow, old: KnownTable, path: string): Problem[] {
  const advice = `is fixed because ${nameOf(row.house_id, row)} has rounds; give the changed game a new market`;
  return [
    ...(isDeepStrictEqual(row.colors, old.colors)
      ? []
      : [{ path: `${path}.colors`, message: `the palette ${advice}` }]),
    ...(row.round_ids === old.round_ids
      ? []
      : [{ path: `${path}.round_ids`, message: `${old.round_ids} ${advice}; found ${row.round_ids}` }]),
  ];
}

function isSameFeed(row: TableRow, old: KnownTable, baseUrl: string | null): boolean {
  return (
    baseUrl === old.baseUrl &&
    row.round_ids === old.round_ids &&
    isDeepStrictEqual(row.settings["feed"], old.settings["feed"]) &&
    row.settings["adapter"] === old.settings["adapter"]
  );
}

const tableEntries = z.array(z.record(z.string(), z.unknown()));

function nameOf(house: string, { game, market }: { game: string; market: string }): string {
  return `${house}/${game}/${market}`;
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
