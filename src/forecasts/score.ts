import type { Sql, Transaction } from "../db/client.ts";
import { isWindow, NEXT_COLOR } from "./features.ts";
import { listReceivedHours } from "./hour-facts-store.ts";
import { listHoursToClose } from "./hour-sums-store.ts";
import { judgeNextColor, judgeWindow } from "./judge.ts";
import { catchUpReferences } from "./reference-hours.ts";
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
import { sumHours } from "./sum-hours.ts";
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
  // before the forecasts are read: of what comes in after this look something may be scored now, but the mark leaves it out
  const spans = await listNewSpans(tx, tableIds);
  const judged = await judgeDue(tx, tableIds);
  await saveScores(tx, judged);
  const unfinished = judged.length === FORECASTS_PER_TRANSACTION;
  // conflicts end windows too: with forecasts left over they stay to be applied, so that these tables are come back to
  const conflicting = unfinished ? [] : await voidConflicts(tx, tableIds);
  const touched: TouchedHour[] = [
    ...judged.map(({ due: { tableId, model, feature, issueHour } }) => ({ tableId, model, feature, hour: issueHour })),
    ...conflicting,
    ...(await listUncountedHours(tx, tableIds)),
    ...(await listHoursToClose(tx, tableIds)),
  ];
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

function distinctHours(hours: readonly TouchedHour[]): TouchedHour[] {
  const byKey = new Map(hours.map((hour) => [`${hour.tableId} ${hour.model} ${hour.feature} ${hour.hour}`, hour]));
  return [...byKey.values()];
}
