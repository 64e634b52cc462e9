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
import { isWindow, NEXT_COLOR } from "./features.ts";
import { judgeNextColor, judgeWindow, scoreOutcome } from "./judge.ts";
import {
  listDueNextColors,
  listNewSpans,
  listTablesToScore,
  lockAccuracy,
  saveMarks,
  saveScores,
  voidConflicts,
  type NewScore,
  type TouchedHour,
} from "./score-store.ts";
import { catchUpReferences, referencesOfHour } from "./reference-hours.ts";
import { readBands } from "./reference-store.ts";
import { emptyReferenceSums, mergeReferenceSums, referenceSumsToJson } from "./reference-sums.ts";
import { addForecast, addPending, addScore, addVoid, emptySums, mergeSums, sumsToJson, type Sums } from "./sums.ts";
import { listDueWindows, listUncountedHours } from "./window-store.ts";

/** What a run did. */
export interface Scored {
  /** Forecasts of the next color that were scored, and those that became void. */
  scored: number;
  voided: number;
  /** Windows that ended, scored or void, or that a conflict voided. */
  windows: number;
  /** Hours whose sums were made anew. */
  hours: number;
}

const FORECASTS_PER_TRANSACTION = 500;

/**
 * Judges the forecasts of a house whose rounds are there, applies conflicts, and makes the touched hours anew from the
 * facts, in transactions of at most 100 tables and 500 forecasts.
 */
export async function scoreHouse(sql: Sql, house: string, signal: AbortSignal): Promise<Scored> {
  const total = { scored: 0, voided: 0, windows: 0, hours: 0 };
  // every table has its turn and the run ends, however fast rounds come in meanwhile
  for (let afterTableId = 0; ;) {
    signal.throwIfAborted();
    const tableIds = await listTablesToScore(sql, { house, afterTableId });
    const lastTableId = tableIds.at(-1);
    if (lastTableId === undefined) return total;
    await catchUpReferences(sql, tableIds, signal);
    const done = await sql.begin((tx) => scoreTables(tx, tableIds));
    total.scored += done.scored;
    total.voided += done.voided;
    total.windows += done.windows;
    total.hours += done.hours;
    if (!done.unfinished) afterTableId = lastTableId;
  }
}

async function scoreTables(tx: Transaction, tableIds: readonly number[]): Promise<Scored & { unfinished: boolean }> {
  await lockAccuracy(tx, tableIds);
  // before the forecasts are read: what comes in after this look is left for the next run as a whole
  const spans = await listNewSpans(tx, tableIds);
  const judged = await judgeDue(tx, tableIds);
  await saveScores(tx, judged);
  const conflicting = await voidConflicts(tx, tableIds);
  const touched: TouchedHour[] = [
    ...judged.map(({ due: { tableId, model, feature, issueHour } }) => ({ tableId, model, feature, hour: issueHour })),
    ...conflicting,
    ...(await listUncountedHours(tx, tableIds)),
    ...(await listHoursToClose(tx, tableIds)),
  ];
  const unfinished = judged.length === FORECASTS_PER_TRANSACTION;
  // with forecasts left over the marks stay, so that these tables are come back to
  if (!unfinished) {
    const received = await listReceivedHours(tx, spans);
    touched.push(...received.map((one) => ({ ...one, feature: NEXT_COLOR })));
    await saveMarks(tx, spans);
  }
  const hours = distinctHours(touched);
  await sumHours(tx, hours);
  const ended = [
    ...judged.map(({ due, status }) => ({ feature: due.feature, isScored: status === "scored" })),
    ...conflicting.map(({ feature }) => ({ feature, isScored: false })),
  ];
  const nextColors = ended.filter(({ feature }) => !isWindow(feature));
  const scored = nextColors.filter(({ isScored }) => isScored).length;
  return {
    scored,
    voided: nextColors.length - scored,
    windows: ended.length - nextColors.length,
    hours: hours.length,
    unfinished,
  };
}

/** What can be judged by now, the first forecasts of the chains first, so that a window never waits behind later ones. */
async function judgeDue(tx: Transaction, tableIds: readonly number[]): Promise<NewScore[]> {
  const nextColors = await listDueNextColors(tx, tableIds, FORECASTS_PER_TRANSACTION);
  const windows = await listDueWindows(tx, tableIds, FORECASTS_PER_TRANSACTION);
  const judged: NewScore[] = [
    ...nextColors.map((due) => ({ due, ...judgeNextColor(due, due.bands) })),
    ...windows.map((due) => ({ due, ...judgeWindow(due) })),
  ];
  return judged
    .toSorted(({ due: a }, { due: b }) => a.tableId - b.tableId || Number(a.seq - b.seq))
    .slice(0, FORECASTS_PER_TRANSACTION);
}

/** Makes hours anew; those of one table at one time together, so that their rounds are read once. */
async function sumHours(tx: Transaction, hours: readonly TouchedHour[]): Promise<void> {
  const bands = await readBands(tx, [...new Set(hours.map(({ tableId }) => tableId))]);
  const together = Map.groupBy(hours, ({ tableId, model, hour }) => `${tableId} ${model} ${hour}`);
  for (const same of together.values()) {
    const [{ tableId, model, hour }] = same as [TouchedHour];
    const features = same.map(({ feature }) => feature);
    const forecasts = await listHourForecasts(tx, { tableId, model, hour, features });
    const references = await referencesOfHour(tx, { tableId, bands: bands.get(tableId) ?? [] }, forecasts);
    for (const one of same) {
      // coverage is a matter of the next color alone: a round without a window of its own is no round that was missed
      const received = one.feature === NEXT_COLOR ? await listReceivedRounds(tx, one) : [];
      const sums = sumForecasts(
        forecasts.filter(({ feature }) => feature === one.feature),
        received,
      );
      const beside = references.get(one.feature) ?? emptyReferenceSums();
      await saveHour(tx, one, sumsToJson(sums), referenceSumsToJson(beside));
    }
  }
}

/** The sums of an hour from its forecasts and its rounds: the one definition, for the job and for `verify`. */
export function sumForecasts(forecasts: readonly HourForecast[], received: readonly ReceivedRound[]): Sums {
  const sums = emptySums();
  for (const { seq, hash, status, pPpm, basePpm, outcome } of forecasts) {
    addForecast(sums, { seq, hash });
    if (status === null) addPending(sums);
    else if (status !== "scored") addVoid(sums, VOID_KIND[status]);
    else if (outcome === null) throw new Error(`expected an outcome of forecast ${seq}, which is scored, got none`);
    else addScore(sums, scoreOutcome(pPpm, basePpm, outcome));
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
  const wholes = new Map(spans.map((span) => [span, { sums: emptySums(), references: emptyReferenceSums() }]));
  for await (const hours of readHourSums(tx, { ...first, start, end })) {
    for (const [span, whole] of wholes) {
      const within = hours.filter(({ hour }) => hour >= span.start && hour < span.end);
      whole.sums = mergeSums([whole.sums, ...within.map(({ sums }) => sums)]);
      whole.references = mergeReferenceSums([whole.references, ...within.map(({ references }) => references)]);
    }
  }
  for (const [span, { sums, references }] of wholes) {
    await publishPeriod(tx, span, sumsToJson(sums), referenceSumsToJson(references));
  }
}

function distinctHours(hours: readonly TouchedHour[]): TouchedHour[] {
  const byKey = new Map(hours.map((hour) => [`${hour.tableId} ${hour.model} ${hour.feature} ${hour.hour}`, hour]));
  return [...byKey.values()];
}
