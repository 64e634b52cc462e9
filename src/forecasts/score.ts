import type { Sql, Transaction } from "../db/client.ts";
import {
  listDuePeriods,
  listHourForecasts,
  listHoursToClose,
  listReceivedHours,
  listReceivedRounds,
  listTablesToPublish,
  publishPeriod,
  readHourSums,
  saveHour,
  savePublished,
  type DuePeriod,
  type HourForecast,
  type ReceivedRound,
} from "./accuracy-store.ts";
import { judgeNextColor } from "./judge.ts";
import { K7_1 } from "./parameters.ts";
import {
  listDueForecasts,
  listNewSpans,
  listTablesToScore,
  lockAccuracy,
  saveMarks,
  saveScores,
  voidConflicts,
  type TouchedHour,
} from "./score-store.ts";
import { scoreNextColor } from "./scoring.ts";
import { addForecast, addPending, addScore, addVoid, emptySums, mergeSums, sumsToJson, type Sums } from "./sums.ts";

/** What a run did. */
export interface Scored {
  scored: number;
  voided: number;
  /** Hours whose sums were made anew. */
  hours: number;
}

const FORECASTS_PER_TRANSACTION = 500;

/**
 * Judges the forecasts of a house whose round is there, applies conflicts, and makes the touched hours anew from the
 * facts, in transactions of at most 100 tables and 500 forecasts.
 */
export async function scoreHouse(sql: Sql, house: string, signal: AbortSignal): Promise<Scored> {
  const total = { scored: 0, voided: 0, hours: 0 };
  // every table has its turn and the run ends, however fast rounds come in meanwhile
  for (let afterTableId = 0; ;) {
    signal.throwIfAborted();
    const tableIds = await listTablesToScore(sql, { house, afterTableId });
    const lastTableId = tableIds.at(-1);
    if (lastTableId === undefined) return total;
    const done = await sql.begin((tx) => scoreTables(tx, tableIds));
    total.scored += done.scored;
    total.voided += done.voided;
    total.hours += done.hours;
    if (!done.unfinished) afterTableId = lastTableId;
  }
}

async function scoreTables(tx: Transaction, tableIds: readonly number[]): Promise<Scored & { unfinished: boolean }> {
  await lockAccuracy(tx, tableIds);
  // before the forecasts are read: what comes in after this look is left for the next run as a whole
  const spans = await listNewSpans(tx, tableIds);
  const due = await listDueForecasts(tx, tableIds, FORECASTS_PER_TRANSACTION);
  const judged = due.map((row) => ({ due: row, ...judgeNextColor(row, row.bands) }));
  await saveScores(tx, judged);
  const conflicting = await voidConflicts(tx, tableIds);
  const touched: TouchedHour[] = [
    ...judged.map(({ due: { tableId, model, feature, issueHour } }) => ({ tableId, model, feature, hour: issueHour })),
    ...conflicting,
    ...(await listHoursToClose(tx, tableIds)),
  ];
  const unfinished = due.length === FORECASTS_PER_TRANSACTION;
  // with forecasts left over the marks stay, so that these tables are come back to
  if (!unfinished) {
    const received = await listReceivedHours(tx, spans);
    touched.push(...received.map((one) => ({ ...one, model: K7_1.name, feature: "next_color" })));
    await saveMarks(tx, spans);
  }
  const hours = distinctHours(touched);
  for (const hour of hours) await sumHour(tx, hour);
  const scored = judged.filter(({ status }) => status === "scored").length;
  return { scored, voided: judged.length - scored + conflicting.length, hours: hours.length, unfinished };
}

async function sumHour(tx: Transaction, hour: TouchedHour): Promise<void> {
  const sums = sumForecasts(await listHourForecasts(tx, hour), await listReceivedRounds(tx, hour));
  await saveHour(tx, hour, sumsToJson(sums));
}

/** The sums of an hour from its forecasts and its rounds: the one definition, for the job and for `verify`. */
export function sumForecasts(forecasts: readonly HourForecast[], received: readonly ReceivedRound[]): Sums {
  const sums = emptySums();
  for (const { seq, hash, status, pPpm, basePpm, outcome } of forecasts) {
    addForecast(sums, { seq, hash });
    if (status === null) addPending(sums);
    else if (status !== "scored") addVoid(sums, VOID_KIND[status]);
    else if (outcome === null) throw new Error(`expected an outcome of forecast ${seq}, which is scored, got none`);
    else addScore(sums, scoreNextColor(pPpm, basePpm, outcome));
  }
  sums.onTimeRounds = BigInt(received.length);
  sums.notIssued = BigInt(received.filter(({ issued }) => !issued).length);
  return sums;
}

const VOID_KIND = { void_gap: "gap", void_house: "house", void_quarantine: "quarantine", void_late: "late" } as const;

/** Shows callers the accuracy of a house's tables where it is due, table by table, so that no score waits for it. */
export async function publishHouse(sql: Sql, house: string, signal: AbortSignal): Promise<number> {
  let published = 0;
  for (const tableId of await listTablesToPublish(sql, house)) {
    signal.throwIfAborted();
    published += await sql.begin((tx) => publishTable(tx, tableId));
  }
  return published;
}

async function publishTable(tx: Transaction, tableId: number): Promise<number> {
  await lockAccuracy(tx, [tableId]);
  const due = await listDuePeriods(tx, tableId);
  for (const spans of Map.groupBy(due, ({ model, feature }) => `${model} ${feature}`).values()) {
    await publishSeries(tx, spans);
  }
  await savePublished(tx, tableId);
  return due.length;
}

/** The due periods of one feature: its hours are read once for all of them. */
async function publishSeries(tx: Transaction, spans: readonly DuePeriod[]): Promise<void> {
  const [first] = spans;
  if (first === undefined) return;
  const start = spans.reduce((least, span) => (span.start < least ? span.start : least), first.start);
  const end = spans.reduce((most, span) => (span.end > most ? span.end : most), first.end);
  const sums = new Map(spans.map((span) => [span, emptySums()]));
  for await (const hours of readHourSums(tx, { ...first, start, end })) {
    for (const [span, before] of sums) {
      const within = hours.filter(({ hour }) => hour >= span.start && hour < span.end);
      sums.set(span, mergeSums([before, ...within.map((hour) => hour.sums)]));
    }
  }
  for (const [span, whole] of sums) await publishPeriod(tx, span, sumsToJson(whole));
}

function distinctHours(hours: readonly TouchedHour[]): TouchedHour[] {
  const byKey = new Map(hours.map((hour) => [`${hour.tableId} ${hour.model} ${hour.feature} ${hour.hour}`, hour]));
  return [...byKey.values()];
}
