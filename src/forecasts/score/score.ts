import type { Sql, Transaction } from "../../db/client.ts";
import { APART, firstOfEach, togetherBy } from "../../db/together.ts";
import { reasonOf } from "../../errors.ts";
import { isOwnFault } from "../../rounds/read-answer.ts";
import { isWindow, NEXT_COLOR } from "../model/features.ts";
import { listReceivedHours } from "../accuracy/hour-facts-store.ts";
import { judgeNextColor, judgeWindow, type ScoreStatus } from "./judge.ts";
import {
  listDueNextColors,
  lockAccuracy,
  nameTable,
  saveScores,
  tryLockAccuracy,
  voidDisputed,
  type NewScore,
  type TouchedHour,
} from "./score-store.ts";
import {
  listNewSpans,
  listTablesToScore,
  saveMarks,
  type HouseToScore,
  type MarkedSpan,
  type TableToScore,
} from "./tables-to-score-store.ts";
import { noteTouched } from "./touched-store.ts";
import { listDueWindows } from "./due-window-store.ts";

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
/** Houses that are looked at by one transaction. */
const HOUSES_AT_ONCE = 50;

/** What one transaction did for a house. */
interface Turn {
  scored: Scored;
  over: Ended[];
  disputed: number;
  /** Where the house's next turn goes on, unless this was the last. */
  afterTableId: number;
  isLast: boolean;
}

const scoreTogether = togetherBy<Sql, HouseToScore, Turn>(scoreHouses, {
  items: HOUSES_AT_ONCE,
  apart: scoreAlone,
});

/**
 * Judges the forecasts of a house whose rounds are there, applies conflicts and revisions, and notes the touched hours
 * for whoever sums them, in transactions of at most 100 tables and 500 forecasts, with those of other houses that come at
 * the same time. A table with a damaged row keeps no other from being scored: its own work is undone and told of as
 * `damaged`. `tell` hears of the forecasts that ended, once that is stored.
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
    const turn = await tried(signal, () => scoreTogether(sql, { house, afterTableId }, signal));
    if (turn.ok) {
      tell(turn.value.over, turn.value.disputed);
      add(total, turn.value.scored);
      if (turn.value.isLast) return total;
      afterTableId = turn.value.afterTableId;
      continue;
    }
    const { tables, cutOff } = await listTablesToScore(sql, [{ house, afterTableId }]);
    for (const { id } of tables) {
      const alone = await scoreToEnd(sql, id, signal, tell);
      add(total, alone.scored);
      if (!alone.ok) total.damaged.push({ table: await nameTable(sql, id), reason: reasonOf(alone.error) });
    }
    if (!cutOff.has(house)) return total;
    afterTableId = tables.at(-1)?.id ?? afterTableId;
  }
}

/** A turn of each house, but for those of which somebody else scores or sums a table, and which must wait for it. */
async function scoreHouses(sql: Sql, asked: readonly HouseToScore[]): Promise<(Turn | typeof APART)[]> {
  const houses = firstOfEach(asked, ({ house }) => house);
  const { tables, cutOff } = await listTablesToScore(sql, [...houses.values()]);
  const ids = tables.map(({ id }) => id);
  const busy = new Set<string>();
  const done = await inTransaction(sql, tables, async (tx) => {
    const free = await tryLockAccuracy(tx, ids);
    for (const { id, house } of tables) if (!free.has(id)) busy.add(house);
    return scoreTables(
      tx,
      tables.flatMap(({ id, house }) => (busy.has(house) ? [] : [id])),
    );
  });
  return asked.map((one) =>
    busy.has(one.house) || houses.get(one.house) !== one ? APART : turnOf(one, tables, done, cutOff.has(one.house)),
  );
}

async function scoreAlone(sql: Sql, house: HouseToScore): Promise<Turn> {
  const { tables, cutOff } = await listTablesToScore(sql, [house]);
  const ids = tables.map(({ id }) => id);
  const done = await inTransaction(sql, tables, async (tx) => {
    await lockAccuracy(tx, ids);
    return scoreTables(tx, ids);
  });
  return turnOf(house, tables, done, cutOff.has(house.house));
}

/** Where there is nothing to score there is nothing to begin. */
async function inTransaction(
  sql: Sql,
  tables: readonly TableToScore[],
  work: (tx: Transaction) => Promise<Done>,
): Promise<Done> {
  return tables.length === 0 ? NOTHING_DONE : sql.begin(work);
}

function turnOf(
  { house, afterTableId }: HouseToScore,
  tables: readonly TableToScore[],
  { judged, disputed, unfinishedFrom }: Done,
  isMore: boolean,
): Turn {
  const own = tables.flatMap((table) => (table.house === house ? [table.id] : []));
  const ids = new Set(own);
  const part = {
    judged: judged.filter(({ due }) => ids.has(due.tableId)),
    disputed: disputed.filter(({ tableId }) => ids.has(tableId)),
  };
  const finished = own.filter((id) => id < unfinishedFrom);
  return {
    scored: countOf(part),
    over: endedOf(part),
    disputed: part.disputed.length,
    afterTableId: finished.at(-1) ?? afterTableId,
    isLast: !isMore && finished.length === own.length,
  };
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

type Tried<Value> = { ok: true; value: Value } | { ok: false; error: unknown };

/** What came of it, or the error of a damaged row. */
async function tried<Value>(signal: AbortSignal, work: () => Promise<Value>): Promise<Tried<Value>> {
  try {
    return { ok: true, value: await work() };
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
    const done = await tried(signal, () =>
      sql.begin(async (tx) => {
        await lockAccuracy(tx, [tableId]);
        return scoreTables(tx, [tableId]);
      }),
    );
    if (!done.ok) return { ok: false, error: done.error, scored };
    tell(endedOf(done.value), done.value.disputed.length);
    add(scored, countOf(done.value));
    if (tableId < done.value.unfinishedFrom) return { ok: true, scored };
  }
}

function add(total: Scored, one: Scored): void {
  total.scored += one.scored;
  total.voided += one.voided;
  total.windows += one.windows;
}

/** What one transaction did with tables. */
interface Done {
  judged: NewScore[];
  /** Of each forecast whose score was voided. */
  disputed: TouchedHour[];
  /** Tables with this id or a higher one have forecasts left, and are to be come back to. */
  unfinishedFrom: number;
}

const NOTHING_DONE: Done = { judged: [], disputed: [], unfinishedFrom: Infinity };

/** Needs the accuracy locks. */
async function scoreTables(tx: Transaction, tableIds: readonly number[]): Promise<Done> {
  if (tableIds.length === 0) return NOTHING_DONE;
  // before the forecasts are read: of what comes in after this look something may be scored now, but the mark leaves it out
  const spans = await listNewSpans(tx, tableIds);
  const judged = await judgeDue(tx, tableIds, spans);
  await saveScores(tx, judged);
  // they come table by table
  const unfinishedFrom = judged.length < FORECASTS_PER_TRANSACTION ? Infinity : (judged.at(-1)?.due.tableId ?? 0);
  // a dispute ends windows too: with forecasts left over it stays to be applied
  const disputed = await voidDisputed(
    tx,
    tableIds.filter((id) => id < unfinishedFrom),
  );
  // and so do the marks
  const finished = spans.filter(({ tableId }) => tableId < unfinishedFrom);
  const received = await listReceivedHours(tx, finished);
  await saveMarks(tx, finished);
  await noteTouched(tx, [
    ...judged.map(({ due: { tableId, model, feature, issueHour } }) => ({ tableId, model, feature, hour: issueHour })),
    ...disputed,
    ...received.map((one) => ({ ...one, feature: NEXT_COLOR })),
  ]);
  return { judged, disputed, unfinishedFrom };
}

function countOf({ judged, disputed }: Pick<Done, "judged" | "disputed">): Scored {
  const ended = [
    ...judged.map(({ due, status }) => ({ feature: due.feature, isScored: status === "scored" })),
    ...disputed.map(({ feature }) => ({ feature, isScored: false })),
  ];
  const nextColors = ended.filter(({ feature }) => !isWindow(feature));
  const scored = nextColors.filter(({ isScored }) => isScored).length;
  return { scored, voided: nextColors.length - scored, windows: ended.length - nextColors.length };
}

function endedOf({ judged }: Pick<Done, "judged">): Ended[] {
  return judged.map(({ due: { tableId, cutoffSeq, settledSeq }, status }) => ({
    tableId,
    cutoffSeq,
    settledSeq,
    status,
  }));
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
