/**
 * Recomputes the accuracy of a table from its forecast sets, scores, revisions and rounds, and compares the stored rows.
 *
 * Rows must match exactly up to the mark, pending counts and coverage included.
 */
import type { Queryable } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import { findMark, listDays, listHours, listPeriods, type Mark } from "./accuracy-store.ts";
import { addFacts, type HourDeltas, type HourSums } from "./add-facts.ts";
import { type AccuracyRows, addDeltas, emptyRows, foldedBefore, rowKeys } from "./periods.ts";
import { readPortions } from "./read-portions.ts";
import { KEY } from "./keys.ts";
import { addSums, decodeSums, encodeSums, type SumVector } from "./sum-vector.ts";

/** Rows of each kind in one read. */
const ROWS_AT_ONCE = 1000;

/** Before the first row of every kind. */
const NOTHING = { setSeq: 0n, settledSeq: 0n, revision: 0n, roundSeq: 0n };

/** Encoded rows by the keys of `rowKeys`. */
export interface RecomputedRows {
  hours: Map<string, Buffer>;
  days: Map<string, Buffer>;
  periods: Map<string, Buffer>;
}

/** A stored row that differs from the recomputed one. */
export interface WrongRow {
  kind: "hour" | "day" | "period";
  key: string;
  expected: string;
  found: string;
}

/**
 * Recomputes all rows of a table up to a mark. Holds the encoded hours in memory: 50 MB for ten features and a year.
 *
 * @throws Error when a fact is damaged
 */
export async function recomputeAccuracy(sql: Queryable, mark: Mark): Promise<RecomputedRows> {
  const hours = new Map<string, { row: Omit<HourSums, "sums">; sums: Buffer }>();
  let place = { ...NOTHING, tableId: mark.tableId, hasRevisions: true };
  for (let isLimited = true; isLimited;) {
    const [read] = await readPortions(sql, [place], ROWS_AT_ONCE, mark);
    if (read === undefined) break;
    const { portion, earlierSets } = read;
    const deltas: HourDeltas = new Map();
    addFacts(deltas, { ...portion, earlierSets });
    for (const [key, { sums, ...row }] of deltas) {
      const own = hours.get(key);
      if (own !== undefined) addSums(sums, decodeSums(own.sums));
      hours.set(key, { row, sums: encodeSums(sums) });
    }
    place = { ...place, ...portion.progress };
    isLimited = portion.isLimited;
  }
  const rows = emptyRows();
  for (const { row, sums } of hours.values()) addHour(rows, mark.hour, { ...row, sums: decodeSums(sums) });
  return {
    hours: new Map([...hours].map(([key, { sums }]) => [key, sums])),
    days: encodeRows(rows.days),
    periods: encodeRows(rows.periods),
  };
}

/** The definition of days and periods: sums of their folded hours. */
function addHour(rows: AccuracyRows, current: number, hour: HourSums): void {
  if (hour.hour >= foldedBefore(current)) return;
  addDeltas(rows, current, new Map([["", hour]]));
  rows.hours.clear();
}

function encodeRows(rows: ReadonlyMap<string, { sums: SumVector }>): Map<string, Buffer> {
  return new Map([...rows].map(([key, { sums }]) => [key, encodeSums(sums)]));
}

/** The first row of a table that differs from its recomputation, or null. `sql` must be one snapshot (repeatable read). */
export async function checkAccuracy(sql: Queryable, tableId: number): Promise<WrongRow | null> {
  const mark = await findMark(sql, tableId);
  if (mark === null) return null;
  const expected = await recomputeAccuracy(sql, mark);
  const everything = { tableId, from: -1_000_000, to: 10_000_000 };
  const days = { tableId, from: -10_000, to: 400_000 };
  return (
    differenceOf("hour", expected.hours, keyed(await listHours(sql, [everything]), rowKeys.hour)) ??
    differenceOf("day", expected.days, keyed(await listDays(sql, [days]), rowKeys.day)) ??
    differenceOf("period", expected.periods, keyed(await listPeriods(sql, [tableId]), rowKeys.period))
  );
}

function keyed<Row extends { sums: Uint8Array }>(rows: readonly Row[], keyOf: (row: Row) => string) {
  return new Map(rows.map((row) => [keyOf(row), row.sums]));
}

/** A row without sums equals a missing row. */
function differenceOf(
  kind: WrongRow["kind"],
  expected: ReadonlyMap<string, Uint8Array>,
  found: ReadonlyMap<string, Uint8Array>,
): WrongRow | null {
  for (const key of new Set([...expected.keys(), ...found.keys()])) {
    const [want, have] = [decoded(expected.get(key)), decoded(found.get(key))];
    if (typeof have === "string") return { kind, key, expected: "the sums of an accuracy row", found: have };
    if (typeof want === "string") throw new Error(want);
    for (const at of new Set([...want.keys(), ...have.keys()])) {
      const [wanted, had] = [want.get(at) ?? 0n, have.get(at) ?? 0n];
      // a cosignature may be stored after the score was added: then the published count is lower
      if (at === KEY.sealed ? had > wanted || had < 0n : wanted !== had)
        return { kind, key, expected: `${at}: ${wanted}`, found: `${at}: ${had}` };
    }
  }
  return null;
}

function decoded(bytes: Uint8Array | undefined): SumVector | string {
  if (bytes === undefined) return new Map();
  try {
    return decodeSums(bytes);
  } catch (error) {
    return reasonOf(error);
  }
}
