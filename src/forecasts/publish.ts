import type { Sql, Transaction } from "../db/client.ts";
import { togetherBy } from "../db/together.ts";
import { reasonOf } from "../errors.ts";
import { isOwnFault } from "../rounds/read-answer.ts";
import {
  listDuePeriods,
  listTablesToPublish,
  publishPeriods,
  savePublished,
  type DuePeriod,
  type PeriodSums,
} from "./accuracy-store.ts";
import { hoursOf } from "./hour-portions.ts";
import { readHourSums, type SeriesSpan } from "./hour-sums-store.ts";
import { emptyReferenceSums, mergeReferenceSums, referenceSumsToJson } from "./reference-sums.ts";
import { catchUpReferences } from "./reference-hours.ts";
import { lockAccuracy, nameTable, type TouchedHour } from "./score-store.ts";
import { sumTouched } from "./sum-hours.ts";
import { sumsToJson } from "./sums-json.ts";
import { emptySums, mergeSums } from "./sums.ts";

/** Whoever scores one of these tables waits until they are published, so there are few of them at a time, */
const TABLES_PER_TRANSACTION = 10;

/** and few hours to sum, some 300 ms. A feature with a longer history takes longer: its periods agree with each other. */
const HOURS_PER_TRANSACTION = 10_000;

/** The due periods of one feature, and the hours that are read once for all of them. */
interface DueSeries extends SeriesSpan {
  key: string;
  periods: DuePeriod[];
}

/** A table whose accuracy could not be published, since sums of it are damaged, and what was wrong. */
export interface Unpublished {
  table: string;
  reason: string;
}

/** What was made anew of a table, hours and rows that callers see; and what ended that early, null where nothing did. */
interface Published {
  tableId: number;
  hours: number;
  rows: number;
  error: unknown;
}

const publishTogether = togetherBy<Sql, number, Published>(publishEach, { items: TABLES_PER_TRANSACTION });

/**
 * Sums the hours of a house's tables in which something happened, and shows callers the accuracy where it is due, some
 * tables at a time, with those of other houses that come at the same time, so that no score waits long. A table with
 * damaged sums keeps no other from being shown: it stays as it was published last and is told of as `damaged`. `hours`
 * and `rows` are the numbers of those that were made anew.
 */
export async function publishHouse(
  sql: Sql,
  house: string,
  signal: AbortSignal,
): Promise<{ hours: number; rows: number; damaged: Unpublished[] }> {
  const total = { hours: 0, rows: 0, damaged: [] as Unpublished[] };
  for (const { tableId, hours, rows, error } of await publish(sql, await listTablesToPublish(sql, house), signal)) {
    total.hours += hours;
    total.rows += rows;
    if (error !== null) total.damaged.push({ table: await nameTable(sql, tableId), reason: reasonOf(error) });
  }
  return total;
}

/**
 * Sums and shows the accuracy of one table now, what is published less than ten seconds ago excepted.
 * @throws the error of its damaged row
 */
export async function publishTable(sql: Sql, tableId: number, signal: AbortSignal): Promise<void> {
  for (const { error } of await publish(sql, [tableId], signal)) if (error !== null) throw error;
}

async function publish(sql: Sql, tableIds: readonly number[], signal: AbortSignal): Promise<Published[]> {
  // a long walk is for whoever needs it alone, and can be stopped
  const behind = await catchUp(sql, tableIds, signal);
  return Promise.all(
    tableIds.map(async (tableId) => {
      const error = behind.get(tableId);
      return error === undefined ? publishTogether(sql, tableId) : { tableId, hours: 0, rows: 0, error };
    }),
  );
}

/** Gives the errors of damaged rows, by table. */
async function catchUp(
  sql: Sql,
  tableIds: readonly number[],
  signal: AbortSignal,
): Promise<ReadonlyMap<number, unknown>> {
  signal.throwIfAborted();
  const errors = new Map<number, unknown>();
  try {
    await catchUpReferences(sql, tableIds, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!isOwnFault(error)) throw error;
    const [only, ...others] = tableIds;
    if (only !== undefined && others.length === 0) return errors.set(only, error);
    for (const id of tableIds) for (const [table, own] of await catchUp(sql, [id], signal)) errors.set(table, own);
  }
  return errors;
}

/** All of them together, or where a row is damaged each by itself. */
async function publishEach(sql: Sql, tableIds: readonly number[]): Promise<Published[]> {
  const made = new Map<number, Published>(
    tableIds.map((tableId) => [tableId, { tableId, hours: 0, rows: 0, error: null }]),
  );
  const together = await publishAll(sql, made);
  if (together !== null) {
    for (const one of made) one[1].error = await publishAll(sql, new Map([one]));
  }
  return tableIds.map((id) => made.get(id)!);
}

/** Gives the error of a damaged row, else null; adds to `made` what is stored by then. */
async function publishAll(sql: Sql, made: ReadonlyMap<number, Published>): Promise<unknown> {
  // every feature has its turn and the run ends, however fast new scores come in meanwhile
  const published = new Set<string>();
  try {
    for (let isFinished = false; !isFinished;) {
      const done = await sql.begin((tx) => publishTables(tx, [...made.keys()], published));
      for (const { key, tableId, periods } of done.series) {
        published.add(key);
        made.get(tableId)!.rows += periods.length;
      }
      for (const { tableId } of done.hours) made.get(tableId)!.hours += 1;
      isFinished = done.isFinished;
    }
    return null;
  } catch (error) {
    if (!isOwnFault(error)) throw error;
    return error;
  }
}

/**
 * Sums the hours of tables and publishes what is due of them but for what is published already, as much as one transaction
 * takes.
 */
async function publishTables(
  tx: Transaction,
  tableIds: readonly number[],
  published: ReadonlySet<string>,
): Promise<{ hours: readonly TouchedHour[]; series: DueSeries[]; isFinished: boolean }> {
  await lockAccuracy(tx, tableIds);
  const { hours, isFinished: isSummed } = await sumTouched(tx, tableIds);
  if (!isSummed) return { hours, series: [], isFinished: false };
  const due = seriesOf(await listDuePeriods(tx, tableIds)).filter(({ key }) => !published.has(key));
  const series = firstOf(due, HOURS_PER_TRANSACTION);
  await publishPeriods(tx, await sumPeriods(tx, series));
  const isFinished = series.length === due.length;
  // with features left over the tables stay due, so that they are come back to
  if (isFinished) await savePublished(tx, tableIds);
  return { hours, series, isFinished };
}

function seriesOf(due: readonly DuePeriod[]): DueSeries[] {
  const byKey = Map.groupBy(due, ({ tableId, model, feature }) => `${tableId} ${model} ${feature}`);
  return [...byKey].flatMap(([key, periods]) => {
    const [first] = periods;
    if (first === undefined) return [];
    const start = periods.reduce((least, period) => (period.start < least ? period.start : least), first.start);
    const end = periods.reduce((most, period) => (period.end > most ? period.end : most), first.end);
    const { tableId, model, feature, firstHour } = first;
    return [{ key, periods, tableId, model, feature, start: start > firstHour ? start : firstHour, end }];
  });
}

/** The first series with so many hours together, at least one. */
function firstOf(series: readonly DueSeries[], hours: number): DueSeries[] {
  let left = hours;
  return series.filter((span, index) => (left -= hoursOf(span)) >= 0 || index === 0);
}

/** Sums the hours of each due period. */
async function sumPeriods(tx: Transaction, series: readonly DueSeries[]): Promise<PeriodSums[]> {
  const wholes = new Map(
    series
      .flatMap(({ periods }) => periods)
      .map((period) => [period, { sums: emptySums(), references: emptyReferenceSums() }]),
  );
  for await (const hours of readHourSums(tx, series)) {
    for (const [{ periods }, own] of Map.groupBy(hours, ({ span }) => span)) {
      const covering = (hour: string) => periods.filter(({ start, end }) => hour >= start && hour < end);
      // periods lie within one another: what several of them cover is summed once
      const shared = Map.groupBy(own, ({ hour }) => String(covering(hour).map(({ period }) => period)));
      for (const same of shared.values()) {
        const sums = mergeSums(same.map((hour) => hour.sums));
        const references = mergeReferenceSums(same.map((hour) => hour.references));
        for (const period of covering(same[0]?.hour ?? "")) {
          const whole = wholes.get(period);
          if (whole === undefined) continue;
          whole.sums = mergeSums([whole.sums, sums]);
          whole.references = mergeReferenceSums([whole.references, references]);
        }
      }
    }
  }
  return [...wholes].map(([due, { sums, references }]) => ({
    due,
    sums: sumsToJson(sums),
    references: referenceSumsToJson(references),
  }));
}
