import type { Sql, Transaction } from "../../db/client.ts";
import { APART, firstOfEach, togetherBy } from "../../db/together.ts";
import { reasonOf } from "../../errors.ts";
import { isOwnFault } from "../../rounds/read-answer.ts";
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
import { lockAccuracy, nameTable, tryLockAccuracy } from "../score/score-store.ts";
import { sumTouched } from "./sum-hours.ts";
import { sumsToJson } from "./sums-json.ts";
import { emptySums, mergeSums } from "./sums.ts";

/** Whoever scores one of these tables waits until they are published, so there are few of them at a time, */
const TABLES_PER_TRANSACTION = 10;

/** and few hours to sum, some 300 ms. A feature with a longer history takes longer: its periods agree with each other. */
const HOURS_PER_TRANSACTION = 10_000;

/** The due periods of one feature under one model, and the hours that are read once for all of them. */
interface DueSeries extends SeriesSpan {
  key: string;
  periods: DuePeriod[];
}

/** A table whose accuracy could not be published, since sums of it are damaged, and what was wrong. */
export interface Unpublished {
  table: string;
  reason: string;
}

/** A table to publish, and the keys of its features that have been published since that was begun. */
interface ToPublish {
  tableId: number;
  published: ReadonlySet<string>;
}

/** What one transaction made anew of a table: hours, and rows that callers see. */
interface Turn {
  hours: number;
  rows: number;
  /** The keys of the features whose rows these are. */
  keys: string[];
  isFinished: boolean;
}

const publishTogether = togetherBy<Sql, ToPublish, Turn>((sql, asked) => sql.begin((tx) => publishFree(tx, asked)), {
  items: TABLES_PER_TRANSACTION,
  apart: (sql, one) => sql.begin((tx) => publishAlone(tx, one)),
});

/** What was made anew of a table, and the error of a damaged row that ended it, null where nothing did. */
interface Published {
  tableId: number;
  hours: number;
  rows: number;
  error: unknown;
}

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
  // a long walk is for whoever needs it, and not for all that share a transaction
  const behind = await catchUp(sql, tableIds, signal);
  const published = tableIds.map(async (tableId) => {
    const made: Published = { tableId, hours: 0, rows: 0, error: behind.get(tableId) ?? null };
    if (made.error === null) made.error = await publishToEnd(sql, made, signal);
    return made;
  });
  // whatever becomes of one, the others come to their end before this does
  await Promise.allSettled(published);
  return Promise.all(published);
}

/** Gives the errors of damaged rows, by table. */
async function catchUp(
  sql: Sql,
  tableIds: readonly number[],
  signal: AbortSignal,
): Promise<ReadonlyMap<number, unknown>> {
  const errors = new Map<number, unknown>();
  const error = await faultOf(signal, () => catchUpReferences(sql, tableIds, signal));
  if (error === null) return errors;
  const [only, ...others] = tableIds;
  if (only !== undefined && others.length === 0) return errors.set(only, error);
  for (const id of tableIds) for (const [table, own] of await catchUp(sql, [id], signal)) errors.set(table, own);
  return errors;
}

/** One turn after the other, added to `made`; every feature has one and it ends, however fast scores come in meanwhile. */
async function publishToEnd(sql: Sql, made: Published, signal: AbortSignal): Promise<unknown> {
  const published = new Set<string>();
  return faultOf(signal, async () => {
    for (let isFinished = false; !isFinished;) {
      signal.throwIfAborted();
      const turn = await publishTogether(sql, { tableId: made.tableId, published }, signal);
      made.hours += turn.hours;
      made.rows += turn.rows;
      for (const key of turn.keys) published.add(key);
      isFinished = turn.isFinished;
    }
  });
}

/** The error of a damaged row, or null. */
async function faultOf(signal: AbortSignal, work: () => Promise<void>): Promise<unknown> {
  try {
    await work();
    return null;
  } catch (error) {
    signal.throwIfAborted();
    if (!isOwnFault(error)) throw error;
    return error;
  }
}

/** A turn of each table but for those that somebody else scores or sums, and which must wait for it. */
async function publishFree(tx: Transaction, asked: readonly ToPublish[]): Promise<(Turn | typeof APART)[]> {
  const tables = firstOfEach(asked, ({ tableId }) => tableId);
  const locked = await tryLockAccuracy(tx, [...tables.keys()]);
  const free = [...tables.values()].filter(({ tableId }) => locked.has(tableId));
  const turns = free.length === 0 ? new Map<ToPublish, Turn>() : await publishTables(tx, free);
  return asked.map((one) => turns.get(one) ?? APART);
}

async function publishAlone(tx: Transaction, one: ToPublish): Promise<Turn> {
  await lockAccuracy(tx, [one.tableId]);
  return (await publishTables(tx, [one])).get(one)!;
}

/**
 * Sums the hours of tables and publishes what is due of them but for what is published already, as much as one transaction
 * takes. Needs the accuracy locks.
 */
async function publishTables(tx: Transaction, asked: readonly ToPublish[]): Promise<Map<ToPublish, Turn>> {
  const tableIds = asked.map(({ tableId }) => tableId);
  const published = new Map(asked.map((one) => [one.tableId, one.published]));
  const { hours, left: unsummed } = await sumTouched(tx, tableIds);
  const summed = tableIds.filter((id) => !unsummed.has(id));
  const due = seriesOf(await listDuePeriods(tx, summed)).filter(
    ({ tableId, key }) => published.get(tableId)?.has(key) === false,
  );
  const series = firstOf(due, HOURS_PER_TRANSACTION);
  await publishPeriods(tx, await sumPeriods(tx, series));
  // with features left over a table stays due, so that it is come back to
  const left = new Set(due.filter((one) => !series.includes(one)).map(({ tableId }) => tableId));
  const finished = summed.filter((id) => !left.has(id));
  await savePublished(tx, finished);
  return new Map(
    asked.map((one) => {
      const own = series.filter(({ tableId }) => tableId === one.tableId);
      const turn = {
        hours: hours.filter(({ tableId }) => tableId === one.tableId).length,
        rows: own.reduce((sum, { periods }) => sum + periods.length, 0),
        keys: own.map(({ key }) => key),
        isFinished: finished.includes(one.tableId),
      };
      return [one, turn];
    }),
  );
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
