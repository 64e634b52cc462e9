import type { Sql, Transaction } from "../db/client.ts";
import { reasonOf } from "../errors.ts";
import { isOwnFault } from "../rounds/read-answer.ts";
import { isWindow, NEXT_COLOR } from "./features.ts";
import { listReceivedHours } from "./hour-facts-store.ts";
import { judgeNextColor, judgeWindow, type ScoreStatus } from "./judge.ts";
import {
  listDueNextColors,
  listNewSpans,
  listTablesToScore,
  lockAccuracy,
  nameTable,
  saveMarks,
  saveScores,
  voidDisputed,
  type MarkedSpan,
  type NewScore,
  type TouchedHour,
} from "./score-store.ts";
import { noteTouched } from "./touched-store.ts";
import { listDueWindows } from "./window-store.ts";

/** What a run did. */
export interface Scored {
  /** Forecasts of the next color that were scored, and those that became void. */
  scored: number;
  voided: number;
  /** Windows that ended, scored or void, or that a conflict or a revision voided. */
  windows: number;
}

/** A table that could not be scored, since a row of it is damaged, and what was wrong. */
export interface Unscored {
  table: string;
  reason: string;
}

/** A forecast that ended: scored, or void and why, the round it was issued after and the one that ended it. */
export interface Ended {
  tableId: number;
  cutoffSeq: bigint;
  settledSeq: bigint;
  status: ScoreStatus;
}

/** `disputed` counts those that ended before, and that another result or a revision of their rounds voids now. */
type Tell = (ended: readonly Ended[], disputed: number) => void;

const NOBODY: Tell = () => undefined;

const FORECASTS_PER_TRANSACTION = 500;

/**
 * Judges the forecasts of a house whose rounds are there, applies conflicts and revisions, and notes the touched hours
 * for whoever sums them, in transactions of at most 100 tables and 500 forecasts. A table with a damaged row keeps no other
 * from being scored: its own work is undone and told of as `damaged`. `tell` hears of the forecasts that ended, once that
 * is stored.
 */
export async function scoreHouse(
  sql: Sql,
  house: string,
  signal: AbortSignal,
  tell = NOBODY,
): Promise<Scored & { damaged: Unscored[] }> {
  const total = { ...NOTHING, damaged: [] as Unscored[] };
  // every table has its turn and the run ends, however fast rounds come in meanwhile
  for (let afterTableId = 0; ;) {
    signal.throwIfAborted();
    const tableIds = await listTablesToScore(sql, { house, afterTableId });
    const lastTableId = tableIds.at(-1);
    if (lastTableId === undefined) return total;
    const done = await scoreTogether(sql, tableIds, signal, tell);
    if (done.ok) {
      add(total, done.scored);
      if (!done.scored.unfinished) afterTableId = lastTableId;
      continue;
    }
    for (const tableId of tableIds) {
      const alone = await scoreToEnd(sql, tableId, signal, tell);
      add(total, alone.scored);
      if (!alone.ok) total.damaged.push({ table: await nameTable(sql, tableId), reason: reasonOf(alone.error) });
    }
    afterTableId = lastTableId;
  }
}

/**
 * Scores what can be scored of one table now: for who decided something of its rounds and wants to see what came of it.
 *
 * @throws the error of its damaged row
 */
export async function scoreTable(sql: Sql, tableId: number, signal: AbortSignal): Promise<Scored> {
  const done = await scoreToEnd(sql, tableId, signal);
  if (!done.ok) throw done.error;
  return done.scored;
}

const NOTHING: Readonly<Scored> = { scored: 0, voided: 0, windows: 0 };

type Together = { ok: true; scored: Scored & { unfinished: boolean } } | { ok: false; error: unknown };

async function scoreTogether(
  sql: Sql,
  tableIds: readonly number[],
  signal: AbortSignal,
  tell: Tell,
): Promise<Together> {
  try {
    const { over, disputed, ...scored } = await sql.begin((tx) => scoreTables(tx, tableIds));
    tell(over, disputed);
    return { ok: true, scored };
  } catch (error) {
    signal.throwIfAborted();
    if (!isOwnFault(error)) throw error;
    return { ok: false, error };
  }
}

async function scoreToEnd(
  sql: Sql,
  tableId: number,
  signal: AbortSignal,
  tell = NOBODY,
): Promise<{ scored: Scored } & ({ ok: true } | { ok: false; error: unknown })> {
  const scored = { ...NOTHING };
  for (;;) {
    signal.throwIfAborted();
    const done = await scoreTogether(sql, [tableId], signal, tell);
    if (!done.ok) return { ok: false, error: done.error, scored };
    add(scored, done.scored);
    if (!done.scored.unfinished) return { ok: true, scored };
  }
}

function add(total: Scored, one: Scored): void {
  total.scored += one.scored;
  total.voided += one.voided;
  total.windows += one.windows;
}

async function scoreTables(
  tx: Transaction,
  tableIds: readonly number[],
): Promise<Scored & { unfinished: boolean; over: Ended[]; disputed: number }> {
  await lockAccuracy(tx, tableIds);
  // before the forecasts are read: of what comes in after this look something may be scored now, but the mark leaves it out
  const spans = await listNewSpans(tx, tableIds);
  const judged = await judgeDue(tx, tableIds, spans);
  await saveScores(tx, judged);
  const unfinished = judged.length === FORECASTS_PER_TRANSACTION;
  // they end windows too: with forecasts left over they stay to be applied, so that these tables are come back to
  const disputed = unfinished ? [] : await voidDisputed(tx, tableIds);
  const touched: TouchedHour[] = [
    ...judged.map(({ due: { tableId, model, feature, issueHour } }) => ({ tableId, model, feature, hour: issueHour })),
    ...disputed,
  ];
  // with forecasts left over the marks stay, so that these tables are come back to
  if (!unfinished) {
    const received = await listReceivedHours(tx, spans);
    touched.push(...received.map((one) => ({ ...one, feature: NEXT_COLOR })));
    await saveMarks(tx, spans);
  }
  await noteTouched(tx, touched);
  const ended = [
    ...judged.map(({ due, status }) => ({ feature: due.feature, isScored: status === "scored" })),
    ...disputed.map(({ feature }) => ({ feature, isScored: false })),
  ];
  const nextColors = ended.filter(({ feature }) => !isWindow(feature));
  const scored = nextColors.filter(({ isScored }) => isScored).length;
  return {
    scored,
    voided: nextColors.length - scored,
    windows: ended.length - nextColors.length,
    unfinished,
    over: judged.map(({ due: { tableId, cutoffSeq, settledSeq }, status }) => ({
      tableId,
      cutoffSeq,
      settledSeq,
      status,
    })),
    disputed: disputed.length,
  };
}

/** What can be judged by now, the first forecasts of the chains first, so that a window never waits behind later ones. */
async function judgeDue(
  tx: Transaction,
  tableIds: readonly number[],
  spans: readonly MarkedSpan[],
): Promise<NewScore[]> {
  const nextColors = await listDueNextColors(tx, tableIds, FORECASTS_PER_TRANSACTION);
  const windows = await listDueWindows(tx, spans, FORECASTS_PER_TRANSACTION);
  const judged: NewScore[] = [
    ...nextColors.map((due) => ({ due, ...judgeNextColor(due, due.bands) })),
    ...windows.map((due) => ({ due, ...judgeWindow(due) })),
  ];
  return judged
    .toSorted(({ due: a }, { due: b }) => a.tableId - b.tableId || Number(a.seq - b.seq))
    .slice(0, FORECASTS_PER_TRANSACTION);
}
