import type { Transaction } from "../../db/client.ts";
import {
  FORECAST_COLUMNS,
  readForecastsForExport,
  readScorePages,
  SCORE_COLUMNS,
  type ScorePlace,
} from "../../forecasts/chain/export-store.ts";
import { csvField } from "../../csv.ts";
import { readRoundsForExport, ROUND_COLUMNS } from "../../rounds/lists/export-store.ts";
import { findPublicEnd } from "./public-export-store.ts";

/** A page of an export: CSV with its header, and the start of the next page; null after the last row. */
export interface ExportPage {
  csv: string;
  next: string | null;
}

/**
 * A page of the public export of a table, after a place that an earlier page returned; null if there is no such place.
 */
type ReadPage = (tx: Transaction, tableId: number, after: string) => Promise<ExportPage | null>;

/**
 * The public data of a table for checking the log and the accuracy: rounds, forecasts and scores, up to the oldest set
 * with an open forecast. Open forecasts and newer scores, which callers pay for, are not included, nor is a revision that
 * follows such a score in the chain.
 */
export const PUBLIC_EXPORTS: Readonly<Record<string, ReadPage>> = {
  async rounds(tx, tableId, after) {
    if (!isSeq(after)) return null;
    const upTo = await findPublicEnd(tx, tableId);
    const rows = (await readRoundsForExport(tx, tableId, { after, upTo }).next()).value ?? [];
    return pageOf(ROUND_COLUMNS, rows, rows.at(-1)?.seq);
  },
  async forecasts(tx, tableId, after) {
    if (!isSeq(after)) return null;
    const upTo = await findPublicEnd(tx, tableId);
    const rows = (await readForecastsForExport(tx, tableId, { after, upTo }).next()).value ?? [];
    return pageOf(FORECAST_COLUMNS, rows, rows.at(-1)?.cutoff_seq);
  },
  async scores(tx, tableId, after) {
    const place = after === "0" ? undefined : scorePlace(after);
    if (place === null) return null;
    const upTo = await findPublicEnd(tx, tableId);
    const pages = readScorePages(tx, tableId, { from: place, upTo });
    const { rows, next } = (await pages.next()).value ?? { rows: [], next: null };
    return pageOf(SCORE_COLUMNS, rows, next === null ? undefined : `${next.set}-${next.revision}-${next.hash}`);
  },
};

function isSeq(text: string): boolean {
  return /^\d{1,18}$/.test(text);
}

function scorePlace(text: string): ScorePlace | null {
  const [, set, revision, hash] = /^(\d{1,18})-(\d{1,18})-([0-9a-f]{64})$/.exec(text) ?? [];
  return set === undefined || revision === undefined || hash === undefined ? null : { set, revision, hash };
}

function pageOf<Column extends string>(
  columns: readonly Column[],
  rows: readonly Record<Column, string>[],
  next: string | undefined,
): ExportPage {
  const lines = rows.map((row) => columns.map((column) => csvField(row[column])).join(","));
  return { csv: `${[columns.join(","), ...lines].join("\n")}\n`, next: next ?? null };
}
