import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../db/client.ts";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { statusOf, type Status } from "../houses/status.ts";
import {
  readAccuracy,
  readAccuracyMarks,
  readClock,
  readHouses,
  readNewestOnTime,
  readNewestRounds,
  readNewRounds,
  readTableMarks,
  readTables,
  type AccuracyMark,
  type Span,
  type TableRow,
} from "./store.ts";
import { applyReading, emptyHolding, heldAccuracy, readRounds, type Holding, type Table } from "./tables.ts";
import { followClock } from "./database-clock.ts";
import { within } from "./within.ts";

/** Twenty looks a second are as live as a caller can be, and bound what a busy evening asks of the database. */
const SPACING_MS = 50;
/** How often it looks without being told to. */
const LOOK_EVERY_MS = 5_000;
/** Houses are read with any look, but not more often than this: they change seldom, and that is announced nowhere. */
const HOUSES_EVERY_MS = 1_000;
/**
 * Accuracy is published every ten seconds at most, a row for each feature and period of a table: to look at all that was
 * written lately with every round of any table would cost more than anything else.
 */
const ACCURACY_EVERY_MS = 1_000;
/** How often it reads all that is published, whatever it says about when it was written. */
const READ_ALL_EVERY_MS = 60_000;
const RETRY_MS = 1_000;
const PATIENCE_MS = 10_000;
/** Tables that are read, whose rounds are, or rows of accuracy whose sums are, by one statement. */
const ROWS_AT_ONCE = 200;
/** The most rounds that are read by one statement where tables are read whole. */
const ROUNDS_AT_ONCE = 4_000;

/** The stored results, in memory. */
export interface Memory {
  readonly tables: Holding;
  statusOf(table: Table): Status;
  /** Database time now, and how long a house may be silent and be live, in milliseconds. */
  clock(): { nowMs: number; liveWindowMs: number };
  /** Whole seconds since what is held was read. */
  ageSeconds(): number;
  /** Asks for a new look soon: at what was written lately, or at everything. Never throws. */
  refresh(what?: "lately" | "everything"): void;
  close(): Promise<void>;
}

/**
 * Reads what is published into memory, and keeps it up to date: by being told (`refresh`) and by looking every few
 * seconds. While PostgreSQL does not answer, what was read last goes on being shown; `ageSeconds` says how old it is.
 *
 * Per table it holds one row and at most `bufferRounds` rounds, about 45 KB at 200 rounds.
 * @throws the driver's error where the first reading fails: without it there is nothing to show.
 */
export async function loadMemory(
  sql: Sql,
  { bufferRounds, liveWindowSeconds }: { bufferRounds: number; liveWindowSeconds: number },
  log: Log,
): Promise<Memory> {
  const holding = emptyHolding();
  const clock = followClock();
  let read = { asOf: "", at: 0 };
  let accuracyRead = read;
  let allReadAt = 0;
  let housesReadAt = 0;
  let turn = 0;
  let lookAgain: NodeJS.Timeout | null = null;
  const forget = () => {
    if (lookAgain !== null) clearTimeout(lookAgain);
    lookAgain = null;
  };

  async function readAndApply(everything: boolean): Promise<void> {
    const mine = ++turn;
    const at = performance.now();
    const { ms, text: asOf } = await readClock(sql);
    clock.heard(ms, at, performance.now());
    const withHouses = everything || at - housesReadAt >= HOUSES_EVERY_MS;
    let houses = withHouses ? await readHouses(sql) : null;
    const tables = everything ? await readTables(sql, null) : await readChangedTables(read.asOf);
    if (houses === null && tables.some(({ house }) => !holding.houses.has(house))) houses = await readHouses(sql);
    const { grown, replaced } = sortOut(tables, holding, bufferRounds);
    const newRounds = await inBatches(grown, async (spans) => readRounds(await readNewRounds(sql, spans)));
    const newestRounds = await inBatches(
      replaced,
      async (spans) => readRounds(await readNewestRounds(sql, spans, bufferRounds)),
      Math.max(1, Math.floor(ROUNDS_AT_ONCE / bufferRounds)),
    );
    const newestOnTime = await inBatches(replaced, (spans) => readNewestOnTime(sql, spans));
    const withAccuracy = everything || at - accuracyRead.at >= ACCURACY_EVERY_MS;
    if (withAccuracy) forget();
    const marks = withAccuracy ? await readAccuracyMarks(sql, everything ? null : accuracyRead.asOf) : [];
    const accuracy = await inBatches(newsOf(marks, holding), (news) => readAccuracy(sql, news));
    if (mine !== turn) return; // took so long that it was given up and done again: what it found is old
    applyReading(
      holding,
      {
        houses,
        tables,
        newRounds: new Map(newRounds),
        newestRounds: new Map(newestRounds),
        newestOnTime: new Map(newestOnTime.map(({ tableId, seq }) => [tableId, seq])),
        accuracy,
      },
      bufferRounds,
    );
    read = { asOf, at };
    if (withAccuracy) accuracyRead = read;
    else lookAgain ??= setTimeout(() => refresh(), ACCURACY_EVERY_MS).unref(); // what was announced may have been accuracy
    if (houses !== null) housesReadAt = at;
    if (everything) allReadAt = at;
  }

  async function readChangedTables(since: string): Promise<TableRow[]> {
    const marks = await readTableMarks(sql, since);
    const news = marks.filter(({ id, writtenAt }) => holding.byId.get(id)?.generatedAt !== writtenAt);
    return inBatches(news, (some) => readTables(sql, some));
  }

  await readAndApply(true);

  const closing = new AbortController();
  let asked: "nothing" | "lately" | "everything" = "nothing";
  let looking: Promise<void> | null = null;
  let isFailing = false;

  async function look(): Promise<void> {
    while (asked !== "nothing" && !closing.signal.aborted) {
      const everything = asked === "everything" || performance.now() - allReadAt >= READ_ALL_EVERY_MS;
      asked = "nothing";
      const [isRead] = await Promise.all([tryToRead(everything), pause(SPACING_MS)]);
      if (isRead) continue;
      asked = "everything"; // whatever was announced meanwhile was not heard
      await pause(RETRY_MS);
    }
    looking = null;
  }

  async function tryToRead(everything: boolean): Promise<boolean> {
    try {
      await within(PATIENCE_MS, "PostgreSQL", readAndApply(everything));
      if (isFailing) log.info("the stored results are read again");
      isFailing = false;
      return true;
    } catch (error) {
      if (!isFailing) log.warn(`the stored results cannot be read, so older ones are shown: ${reasonOf(error)}`);
      isFailing = true;
      return false;
    }
  }

  function pause(ms: number): Promise<void> {
    return delay(ms, undefined, { signal: closing.signal, ref: false }).catch(() => undefined);
  }

  function refresh(what: "lately" | "everything" = "lately"): void {
    if (asked !== "everything") asked = what;
    looking ??= look();
  }

  const liveWindowMs = liveWindowSeconds * 1_000;
  const nowMs = () => clock.nowMs();
  const timer = setInterval(refresh, LOOK_EVERY_MS);
  timer.unref();

  return {
    tables: holding,
    statusOf({ enabled, house }) {
      const newestPolledAgeMs = house.newestPolledMs === null ? null : nowMs() - house.newestPolledMs;
      return statusOf({ newestPolledAgeMs, paused: house.paused, enabled: house.enabled && enabled }, liveWindowMs);
    },
    clock: () => ({ nowMs: nowMs(), liveWindowMs }),
    ageSeconds: () => Math.floor((performance.now() - read.at) / 1_000),
    refresh,
    async close() {
      clearInterval(timer);
      forget();
      closing.abort();
      await looking;
    },
  };
}

/** Which tables have a few rounds more than we hold, and which must be read anew. */
function sortOut(rows: readonly TableRow[], holding: Holding, bufferRounds: number) {
  const grown: Span[] = [];
  const replaced: Span[] = [];
  for (const { id, roundIds, lastSeq } of rows) {
    const held = holding.byId.get(id)?.lastSeq;
    if (held === lastSeq) continue;
    const more = lastSeq - (held ?? -Infinity);
    (more > 0 && more <= bufferRounds ? grown : replaced).push({ id, roundIds, after: held ?? 0, lastSeq });
  }
  return { grown, replaced };
}

/** The marks of accuracy that is not held as it was written. */
function newsOf(marks: readonly AccuracyMark[], { byId }: Holding): AccuracyMark[] {
  return marks.filter((mark) => heldAccuracy(byId.get(mark.tableId), mark)?.writtenAt !== mark.writtenAt);
}

async function inBatches<Asked, Row>(
  asked: readonly Asked[],
  readRows: (asked: readonly Asked[]) => Promise<Row[]>,
  atOnce = ROWS_AT_ONCE,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (let from = 0; from < asked.length; from += atOnce) {
    for (const row of await readRows(asked.slice(from, from + atOnce))) rows.push(row);
  }
  return rows;
}
