/**
 * Recomputes the accuracy of a table from its forecast sets, scores, revisions and rounds, and compares the stored rows.
 *
 * Rows must match exactly up to the mark, pending counts and coverage included.
 */
import type { Queryable } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import { findMark, type Mark } from "./mark-store.ts";
import { listDays, listHours, listPeriods } from "./row-store.ts";
import { addFacts, type HourDeltas, type HourSums } from "./add-facts.ts";
import {
  type AccuracyRows,
  addDeltas,
  type DaySums,
  emptyRows,
  foldedBefore,
  type PeriodSums,
  rowKeys,
} from "./periods.ts";
import type { Progress } from "./portion.ts";
import { readPortions } from "./read-portions.ts";
import { KEY } from "./keys.ts";
import { addSums, decodeSums, encodeSums, type SumVector } from "./sum-vector.ts";

/** Rows of each kind in one read. */
const ROWS_AT_ONCE = 1000;

/** Before the first row of every kind. */
const NOTHING = { setSeq: 0n, settledSeq: 0n, revision: 0n, roundSeq: 0n };

/** A row with its sums encoded. */
type Encoded<Row> = Omit<Row, "sums"> & { sums: Uint8Array };

/** Rows of a table by the keys of `rowKeys`. */
export interface EncodedRows {
  hours: Map<string, Encoded<HourSums>>;
  days: Map<string, Encoded<DaySums>>;
  periods: Map<string, Encoded<PeriodSums>>;
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
export async function recomputeAccuracy(sql: Queryable, mark: Mark): Promise<EncodedRows> {
  const hours: EncodedRows["hours"] = new Map();
  await eachPortion(sql, { ...NOTHING, tableId: mark.tableId }, mark, (deltas) => {
    for (const [key, { sums, ...row }] of deltas) {
      const own = hours.get(key);
      if (own !== undefined) addSums(sums, decodeSums(own.sums));
      hours.set(key, { ...row, sums: encodeSums(sums) });
    }
  });
  const rows = emptyRows();
  for (const row of hours.values()) addHour(rows, mark.hour, { ...row, sums: decodeSums(row.sums) });
  return { hours, days: encodeRows(rows.days), periods: encodeRows(rows.periods) };
}

/** What the rows of a table between two places add to its hours, a portion at a time. */
async function eachPortion(
  sql: Queryable,
  from: Progress & { tableId: number },
  upTo: Progress,
  use: (deltas: HourDeltas) => void,
): Promise<void> {
  let place = { ...from, hasRevisions: true };
  for (let isLimited = true; isLimited;) {
    const [read] = await readPortions(sql, [place], ROWS_AT_ONCE, upTo);
    if (read === undefined) return;
    const { portion, earlierSets } = read;
    const deltas: HourDeltas = new Map();
    addFacts(deltas, { ...portion, earlierSets });
    use(deltas);
    place = { ...place, ...portion.progress };
    isLimited = portion.isLimited;
  }
}

/** Sums of a model and feature over all time. */
export type TotalSums = Omit<HourSums, "hour">;

/**
 * The sums of forecasts and scores of a table over all time, up to a place before its mark: those of its hours, which
 * must be correct, less what was added since the place.
 *
 * @throws Error when a fact is damaged
 */
export async function sumsUpTo(
  sql: Queryable,
  tableId: number,
  place: Omit<Progress, "roundSeq">,
): Promise<TotalSums[]> {
  const mark = await findMark(sql, tableId);
  if (mark === null) return [];
  const totals = new Map<string, TotalSums>();
  const add = ({ model, feature, sums }: TotalSums, sign: 1 | -1) => {
    const key = `${feature} ${model}`;
    const total = totals.get(key) ?? { model, feature, sums: new Map() };
    addSums(total.sums, sums, sign);
    totals.set(key, total);
  };
  for (const row of await listHours(sql, [allHours(tableId)])) add({ ...row, sums: decodeSums(row.sums) }, 1);
  await eachPortion(sql, { ...place, roundSeq: mark.roundSeq, tableId }, mark, (deltas) => {
    for (const delta of deltas.values()) add(delta, -1);
  });
  return [...totals.values()];
}

/** The definition of days and periods: sums of their folded hours. */
function addHour(rows: AccuracyRows, current: number, hour: HourSums): void {
  if (hour.hour >= foldedBefore(current)) return;
  addDeltas(rows, current, new Map([["", hour]]));
  rows.hours.clear();
}

function encodeRows<Row extends { sums: SumVector }>(rows: ReadonlyMap<string, Row>): Map<string, Encoded<Row>> {
  return new Map([...rows].map(([key, row]) => [key, { ...row, sums: encodeSums(row.sums) }]));
}

/** The stored rows of a table. */
export async function readAccuracy(sql: Queryable, tableId: number): Promise<EncodedRows> {
  const hours = await listHours(sql, [allHours(tableId)]);
  const days = await listDays(sql, [{ tableId, from: -10_000, to: 400_000 }]);
  const periods = await listPeriods(sql, [tableId]);
  return {
    hours: new Map(hours.map((row) => [rowKeys.hour(row), row])),
    days: new Map(days.map((row) => [rowKeys.day(row), row])),
    periods: new Map(periods.map((row) => [rowKeys.period(row), row])),
  };
}

function allHours(tableId: number) {
  return { tableId, from: -1_000_000, to: 10_000_000 };
}

/** The first row of a table that differs from its recomputation, or null. `sql` must be one snapshot (repeatable read). */
export async function checkAccuracy(sql: Queryable, tableId: number): Promise<WrongRow | null> {
  const mark = await findMark(sql, tableId);
  if (mark === null) return null;
  return findDifference(await recomputeAccuracy(sql, mark), await readAccuracy(sql, tableId));
}

/** The first stored row that differs from the recomputed one, or null. */
export function findDifference(expected: EncodedRows, found: EncodedRows): WrongRow | null {
  return (
    differenceOf("hour", expected.hours, found.hours) ??
    differenceOf("day", expected.days, found.days) ??
    differenceOf("period", expected.periods, found.periods)
  );
}

/** A row without sums equals a missing row. */
function differenceOf(
  kind: WrongRow["kind"],
  expected: ReadonlyMap<string, { sums: Uint8Array }>,
  found: ReadonlyMap<string, { sums: Uint8Array }>,
): WrongRow | null {
  for (const key of new Set([...expected.keys(), ...found.keys()])) {
    const [want, have] = [decoded(expected.get(key)?.sums), decoded(found.get(key)?.sums)];
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
