/**
 * Adds forecasts, scores, revisions and rounds to the accuracy of tables.
 *
 * Rows and mark change in one transaction under the mark's lock: a late, repeated, concurrent or interrupted run gives the
 * same rows. The cost is proportional to the rows since the mark; the periods of a table advance once an hour.
 */
import type { Sql, Transaction } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import { createMarks, lockMarks, moveMarks, type LockedMark } from "./mark-store.ts";
import {
  listDays,
  listHours,
  listPeriods,
  readHours,
  saveDays,
  saveHours,
  saveModels,
  savePeriods,
  type NewModel,
  type StoredDay,
  type StoredHour,
  type StoredPeriod,
} from "./row-store.ts";
import { addFacts, type HourDeltas } from "./add-facts.ts";
import {
  type AccuracyRows,
  addDeltas,
  dayOf,
  daysLeaving,
  emptyRows,
  foldedBefore,
  hoursFolding,
  hoursLeaving,
  moveHour,
  rowKeys,
  type Span,
} from "./periods.ts";
import { VOID_REASONS } from "./keys.ts";
import type { Portion } from "./portion.ts";
import { readPortions, type ReadPortion } from "./read-portions.ts";
import { decodeSums, encodeSums, type SumVector } from "./sum-vector.ts";

/** Rows of one kind of one table in a transaction: about 50 ms of CPU. */
const ROWS_PER_PORTION = 500;

/** Tables in a transaction. */
const TABLES_PER_TRANSACTION = 100;

/** A table whose rows could not be added because one is damaged, with the error. */
export interface DamagedTable {
  tableId: number;
  reason: string;
}

/** What was added: sets, scored rounds, revisions, and the forecasts that became void, by reason. */
interface AddedAccuracy {
  sets: number;
  scores: number;
  revisions: number;
  voids: Map<(typeof VOID_REASONS)[number], number>;
}

/**
 * Adds all rows of the tables that are committed when it is called. A table with a damaged row is left unchanged and
 * returned; it does not stop the others.
 */
export async function addAccuracy(
  sql: Sql,
  tableIds: readonly number[],
  signal: AbortSignal,
  limits = { rows: ROWS_PER_PORTION, tables: TABLES_PER_TRANSACTION },
): Promise<AddedAccuracy & { damaged: DamagedTable[] }> {
  const counts: AddedAccuracy = { sets: 0, scores: 0, revisions: 0, voids: new Map() };
  const damaged: DamagedTable[] = [];
  let waiting = [...tableIds];
  while (waiting.length > 0) {
    signal.throwIfAborted();
    const now = waiting.slice(0, limits.tables);
    const added = await sql.begin((tx) => addPortions(tx, now, limits.rows));
    for (const { portion } of added.done) {
      counts.sets += portion.sets.length;
      counts.scores += portion.scores.length;
      counts.revisions += portion.revisions.length;
      countVoids(counts.voids, portion);
    }
    damaged.push(...added.damaged);
    const limited = added.done.flatMap(({ mark, portion }) => (portion.isLimited ? [mark.tableId] : []));
    waiting = [...waiting.slice(limits.tables), ...limited];
  }
  return { ...counts, damaged };
}

/** Each forecast once: a void one stays void. */
function countVoids(into: AddedAccuracy["voids"], { scores, revisions }: Portion): void {
  const settled = scores.flatMap(({ settlements }) => settlements.map(({ reason }) => reason));
  for (const stored of [...settled, ...revisions.map(({ after }) => after.reason)]) {
    const reason = VOID_REASONS[stored - 1];
    if (reason !== undefined) into.set(reason, (into.get(reason) ?? 0) + 1);
  }
}

/** What a transaction does to one table. */
type TablePortion = ReadPortion<LockedMark>;

async function addPortions(
  tx: Transaction,
  tableIds: readonly number[],
  limit: number,
): Promise<{ done: TablePortion[]; damaged: DamagedTable[] }> {
  let marks = await lockMarks(tx, tableIds);
  if (marks.length < tableIds.length) {
    await createMarks(tx, tableIds);
    marks = await lockMarks(tx, tableIds);
  }
  const read = await readPortions(tx, marks, limit);
  const damaged: DamagedTable[] = [];
  const deltas = new Map<TablePortion, HourDeltas>();
  for (const one of read) {
    const own = ofOne(one, damaged, () => {
      const sums: HourDeltas = new Map();
      addFacts(sums, { ...one.portion, earlierSets: one.earlierSets });
      return sums;
    });
    if (own !== null) deltas.set(one, own);
  }
  const rows = await readRows(tx, deltas, damaged);
  const done = [...rows.keys()];
  await saveModels(tx, done.flatMap(newModelsOf));
  await save(tx, rows);
  await moveMarks(
    tx,
    done.map(({ mark, portion }) => ({ ...mark, ...portion.progress, hour: nextHour(mark) })),
  );
  return { done, damaged };
}

/** Runs a pure step of one table; if it throws, the table is recorded as damaged. */
function ofOne<Result>({ mark }: TablePortion, damaged: DamagedTable[], step: () => Result): Result | null {
  try {
    return step();
  } catch (error) {
    damaged.push({ tableId: mark.tableId, reason: reasonOf(error) });
    return null;
  }
}

/** Never earlier than the current hour, since the database clock may step back. */
function nextHour({ hour, currentHour }: LockedMark): number {
  return Math.max(hour, currentHour);
}

function newModelsOf({ mark, portion }: TablePortion): NewModel[] {
  const known = new Set(mark.models);
  return portion.sets.flatMap(({ model, cutoffSeq, hour }) => {
    if (known.has(model)) return [];
    known.add(model);
    return [{ tableId: mark.tableId, model, cutoffSeq, hour }];
  });
}

/** The rows of each table with the additions. */
async function readRows(
  tx: Transaction,
  deltas: ReadonlyMap<TablePortion, HourDeltas>,
  damaged: DamagedTable[],
): Promise<Map<TablePortion, AccuracyRows>> {
  const parts = [...deltas].map(([one, own]) => neededRows(one, own));
  const hours = Map.groupBy(
    [
      ...(await readHours(
        tx,
        parts.flatMap(({ hours: keys }) => keys),
      )),
      ...(await listHours(
        tx,
        parts.flatMap(({ hourSpans }) => hourSpans),
      )),
    ],
    ({ tableId }) => tableId,
  );
  const days = Map.groupBy(
    await listDays(
      tx,
      parts.flatMap(({ daySpans }) => daySpans),
    ),
    ({ tableId }) => tableId,
  );
  const withPeriods = parts.flatMap(({ tableId, needsPeriods }) => (needsPeriods ? [tableId] : []));
  const periods = Map.groupBy(await listPeriods(tx, withPeriods), ({ tableId }) => tableId);
  const changed = new Map<TablePortion, AccuracyRows>();
  for (const [one, own] of deltas) {
    const { mark } = one;
    const rows = ofOne(one, damaged, () => {
      const all = emptyRows();
      for (const row of hours.get(mark.tableId) ?? []) {
        all.hours.set(rowKeys.hour(row), { ...row, sums: decodeSums(row.sums) });
      }
      for (const row of days.get(mark.tableId) ?? []) {
        all.days.set(rowKeys.day(row), { ...row, sums: decodeSums(row.sums) });
      }
      for (const row of periods.get(mark.tableId) ?? []) {
        all.periods.set(rowKeys.period(row), { ...row, sums: decodeSums(row.sums) });
      }
      addDeltas(all, mark.hour, own);
      moveHour(all, mark.hour, nextHour(mark));
      return all;
    });
    if (rows !== null) changed.set(one, rows);
  }
  return changed;
}

/** The stored rows that the additions change, or that are needed to advance the periods. */
function neededRows({ mark }: TablePortion, deltas: HourDeltas) {
  const { tableId, hour } = mark;
  const next = nextHour(mark);
  const keys = [...deltas.values()];
  const folded = keys.filter((key) => key.hour < foldedBefore(hour));
  const spans: Span[] = next > hour ? [hoursLeaving(hour, next), hoursFolding(hour, next)] : [];
  const dayParts: Span[] = [
    ...(next > hour
      ? [...daysOf(hoursFolding(hour, next)), ...DAY_PERIODS.map((p) => daysLeaving(p, hour, next))]
      : []),
    ...folded.map((key) => ({ from: dayOf(key.hour), to: dayOf(key.hour) + 1 })),
  ];
  const ofTable = (span: Span) => (span.to > span.from ? [{ tableId, ...span }] : []);
  return {
    tableId,
    hours: keys.map(({ model, feature, hour: at }) => ({ tableId, model, feature, hour: at })),
    hourSpans: spans.flatMap(ofTable),
    daySpans: dayParts.flatMap(ofTable),
    needsPeriods: next > hour || folded.length > 0,
  };
}

const DAY_PERIODS = ["7d", "30d", "90d"] as const;

function daysOf({ from, to }: Span): Span[] {
  return to > from ? [{ from: dayOf(from), to: dayOf(to - 1) + 1 }] : [];
}

async function save(tx: Transaction, changed: ReadonlyMap<TablePortion, AccuracyRows>): Promise<void> {
  const hours: StoredHour[] = [];
  const days: StoredDay[] = [];
  const periods: StoredPeriod[] = [];
  for (const [
    {
      mark: { tableId },
    },
    rows,
  ] of changed) {
    const isChanged = (row: { sums: SumVector }) => rows.changed.has(row.sums);
    const stored = <Row extends { sums: SumVector }>(row: Row) => ({ ...row, tableId, sums: encodeSums(row.sums) });
    hours.push(...rows.hours.values().filter(isChanged).map(stored));
    days.push(...rows.days.values().filter(isChanged).map(stored));
    periods.push(...rows.periods.values().filter(isChanged).map(stored));
  }
  await saveHours(tx, hours);
  await saveDays(tx, days);
  await savePeriods(tx, periods);
}
