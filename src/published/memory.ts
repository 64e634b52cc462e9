import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../db/client.ts";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { statusOf, type Status } from "../houses/status.ts";
import {
  readAccuracy,
  readCheckpoint,
  readHeads,
  readHouses,
  readNewestRounds,
  readNewRounds,
  readPalettes,
  readSets,
  readVersions,
  type HeadRow,
  type RoundRow,
  type Span,
  type WantedSet,
} from "./store.ts";
import { applyReading, emptyHolding, holdRows, type Holding, type Table } from "./tables.ts";
import { followClock } from "./database-clock.ts";
import { within } from "../http/within.ts";

/** Twenty reads per second are fast enough for callers, and limit the load of a busy evening on the database. */
const SPACING_MS = 50;
/** The interval of reading all tables without a notification. */
const LOOK_EVERY_MS = 5_000;
/** The same for a replica: a notification is sent by the primary, and may arrive before the row. */
const LOOK_AT_REPLICA_EVERY_MS = 1_000;
/** With notifications of some tables, all are read if the last such read is older: `ageSeconds` counts from it. */
const ALL_EVERY_MS = 1_000;
/** Houses are read with any other read, but not more often than this: they change seldom and without a notification. */
const HOUSES_EVERY_MS = 1_000;
/**
 * The accuracy of a table is ten features over five periods: reading it with each round would cost more than the rest.
 */
const ACCURACY_EVERY_MS = 1_000;
const RETRY_MS = 1_000;
const PATIENCE_MS = 10_000;
/** Tables that one statement reads, or whose rounds it reads. */
const TABLES_AT_ONCE = 500;
/**
 * Tables whose accuracy is read per second, the longest stale first: each has up to ninety rows, and takes some 200 µs of
 * processor time. With 10,000 tables of a round per 15 s, accuracy is 100 s old.
 */
const ACCURACY_AT_ONCE = 100;
/** The most rounds that one statement reads when tables are read in full. */
const ROUNDS_AT_ONCE = 4_000;

/** The stored results, in memory. */
export interface Memory {
  readonly tables: Holding;
  statusOf(table: Table): Status;
  /** Database time now, and how long a live house may have no round, in milliseconds. */
  clock(): { nowMs: number; liveWindowMs: number };
  /** Whole seconds since the data was read, plus the maximum lag of the replica. */
  ageSeconds(): number;
  /** Size and root of the newest checkpoint of the public log, as `1234 <base64>`; null before the first. */
  checkpoint(): string | null;
  /** Requests a read soon, of these tables or of all. Never throws. */
  refresh(tableIds?: readonly number[] | null): void;
  close(): Promise<void>;
}

/**
 * Reads the published data into memory, and keeps it current: after a notification (`refresh`), and every few seconds.
 * A read gets the versions of tables, and then of those that changed the head, new forecast sets and new rounds. While
 * PostgreSQL does not respond, the last data is still shown; `ageSeconds` reports its age.
 *
 * Per table it holds its head, its open forecasts and at most `bufferRounds` rounds, about 45 kB at 200 rounds.
 * `isReplica` means that the connections lead to a replica: then it reads each second, and the lag of the replica
 * counts as age.
 *
 * @throws the driver's error if the first read fails: without it there is nothing to show
 */
export async function loadMemory(
  sql: Sql,
  {
    bufferRounds,
    liveWindowSeconds,
    isReplica = false,
  }: { bufferRounds: number; liveWindowSeconds: number; isReplica?: boolean },
  log: Log,
): Promise<Memory> {
  const holding = emptyHolding();
  const clock = followClock();
  const palettes = new Map<number, readonly string[]>();
  /** Tables whose accuracy changed and has not been read. */
  const staleAccuracy = new Map<number, number>();
  let readAt = 0;
  /** The lag of the database behind its primary when all tables were last read. */
  let behindMs = 0;
  let accuracyReadAt = 0;
  let housesReadAt = 0;
  let look = 0;
  let checkpoint: string | null = null;
  let accuracyTimer: NodeJS.Timeout | null = null;

  /** Null for all tables. */
  async function readAndApply(tableIds: readonly number[] | null): Promise<void> {
    const mine = ++look;
    const at = performance.now();
    const isWhole = tableIds === null || at - readAt >= ALL_EVERY_MS;
    const versions = await readVersions(sql, isWhole ? null : tableIds);
    clock.heard(versions.ms, at, performance.now());
    const changed = [...versions.heads].flatMap(([id, version]) => {
      const table = holding.byId.get(id);
      return table?.headVersion === version ? [] : [{ id, readingAt: table?.readingAt ?? null }];
    });
    const heads = await inBatches(changed, (some) => readHeads(sql, some));
    const withHouses = at - housesReadAt >= HOUSES_EVERY_MS || heads.some(({ house }) => !holding.houses.has(house));
    const houses = withHouses ? await readHouses(sql) : null;
    if (withHouses) checkpoint = await readCheckpoint(sql);
    const replaced = new Set(heads.filter((head) => isReplaced(head, holding, bufferRounds)).map(({ id }) => id));
    const sets = await readNewSets(heads.flatMap((head) => wantedSets(head, replaced.has(head.id))));
    const rounds = await readRounds(heads, replaced);
    for (const [id, version] of versions.accuracy) {
      if (holding.byId.get(id)?.accuracyVersion !== version) staleAccuracy.set(id, version);
    }
    // settling is paused, so the pending forecasts change with each round
    for (const { id, hasEnded } of heads) if (hasEnded) staleAccuracy.set(id, versions.accuracy.get(id) ?? 0);
    const withAccuracy = at - accuracyReadAt >= ACCURACY_EVERY_MS;
    const most = accuracyReadAt === 0 ? Infinity : ACCURACY_AT_ONCE;
    const stale = withAccuracy ? [...staleAccuracy].slice(0, most) : [];
    const accuracy = await inBatches(
      stale,
      (some) =>
        readAccuracy(
          sql,
          some.map(([id]) => id),
        ),
      ACCURACY_AT_ONCE,
    );
    if (mine !== look) return; // a later read has begun, so this result is outdated
    const accuracyOf = Map.groupBy(accuracy, ({ tableId }) => tableId);
    applyReading(
      holding,
      {
        houses,
        heads,
        sets: Map.groupBy(sets, ({ tableId }) => tableId),
        replaced,
        rounds: new Map(rounds),
        accuracy: new Map(stale.map(([id, version]) => [id, { version, rows: accuracyOf.get(id) ?? [] }])),
      },
      bufferRounds,
    );
    if (isWhole) [readAt, behindMs] = [at, versions.behindMs];
    if (houses !== null) housesReadAt = at;
    if (withAccuracy) {
      accuracyReadAt = at;
      for (const [id, version] of stale) if (staleAccuracy.get(id) === version) staleAccuracy.delete(id);
    }
    if (staleAccuracy.size > 0) {
      accuracyTimer ??= setTimeout(() => {
        accuracyTimer = null;
        refresh([...staleAccuracy.keys()]);
      }, ACCURACY_EVERY_MS).unref();
    }
  }

  /** Sets newer than the held ones that contain something callers may see. */
  function wantedSets({ id, openSets, setSeq, newestSeq }: HeadRow, isReplacing: boolean): WantedSet[] {
    const after = isReplacing ? 0 : (holding.byId.get(id)?.setsUpTo ?? 0);
    const shown = new Set(setSeq === null || setSeq !== newestSeq ? openSets : [...openSets, setSeq]);
    return [...shown].flatMap((cutoffSeq) => (cutoffSeq > after ? [{ tableId: id, cutoffSeq }] : []));
  }

  async function readNewSets(wanted: readonly WantedSet[]) {
    const rows = await inBatches(wanted, (some) => readSets(sql, some));
    await knowPalettes(rows);
    return rows.map((row) => ({ ...row, colors: palettes.get(row.palette) ?? [] }));
  }

  async function readRounds(heads: readonly HeadRow[], replaced: ReadonlySet<number>) {
    const spans = heads.flatMap(({ id, roundIds, lastSeq }): Span[] => {
      const after = replaced.has(id) ? 0 : (holding.byId.get(id)?.lastSeq ?? 0);
      return lastSeq > after ? [{ id, roundIds, after, lastSeq }] : [];
    });
    const hold = async (rows: readonly RoundRow[]) => {
      await knowPalettes(rows);
      return holdRows(rows, palettes);
    };
    const [grown, whole] = [spans.filter(({ id }) => !replaced.has(id)), spans.filter(({ id }) => replaced.has(id))];
    return [
      ...(await inBatches(grown, async (some) => hold(await readNewRounds(sql, some)))),
      ...(await inBatches(
        whole,
        async (some) => hold(await readNewestRounds(sql, some, bufferRounds)),
        Math.max(1, Math.floor(ROUNDS_AT_ONCE / bufferRounds)),
      )),
    ];
  }

  /** Reads the palettes of rows that are not known yet; a stored palette never changes. */
  async function knowPalettes(rows: readonly { palette: number }[]): Promise<void> {
    const unknown = new Set(rows.map(({ palette }) => palette).filter((id) => !palettes.has(id)));
    if (unknown.size === 0) return;
    for (const { id, colors } of await readPalettes(sql, [...unknown])) palettes.set(id, colors);
  }

  await readAndApply(null);

  const closing = new AbortController();
  /** What to read next. */
  let wanted: Set<number> | "all" | null = null;
  let looking: Promise<void> | null = null;
  let isFailing = false;

  async function keepLooking(): Promise<void> {
    while (wanted !== null && !closing.signal.aborted) {
      const tableIds = wanted === "all" ? null : [...wanted];
      wanted = null;
      const [isRead] = await Promise.all([tryToRead(tableIds), pause(SPACING_MS)]);
      if (isRead) continue;
      wanted = "all"; // notifications were missed
      await pause(RETRY_MS);
    }
    looking = null;
  }

  async function tryToRead(tableIds: readonly number[] | null): Promise<boolean> {
    try {
      await within(PATIENCE_MS, "PostgreSQL", readAndApply(tableIds));
      if (isFailing) log.info("the stored results can be read again");
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

  function refresh(tableIds: readonly number[] | null = null): void {
    if (tableIds === null) wanted = "all";
    else if (wanted !== "all") {
      wanted ??= new Set();
      for (const id of tableIds) wanted.add(id);
    }
    looking ??= keepLooking();
  }

  const liveWindowMs = liveWindowSeconds * 1_000;
  const nowMs = () => clock.nowMs();
  const timer = setInterval(() => refresh(), isReplica ? LOOK_AT_REPLICA_EVERY_MS : LOOK_EVERY_MS);
  timer.unref();

  return {
    tables: holding,
    statusOf({ enabled, house }) {
      const newestPolledAgeMs = house.newestPolledMs === null ? null : nowMs() - house.newestPolledMs;
      return statusOf({ newestPolledAgeMs, paused: house.paused, enabled: house.enabled && enabled }, liveWindowMs);
    },
    clock: () => ({ nowMs: nowMs(), liveWindowMs }),
    checkpoint: () => checkpoint,
    ageSeconds: () => Math.floor((performance.now() - readAt + behindMs) / 1_000),
    refresh,
    async close() {
      clearInterval(timer);
      if (accuracyTimer !== null) clearTimeout(accuracyTimer);
      closing.abort();
      await looking;
    },
  };
}

/** The table is new, or has so many new rounds (or, restored from a backup, fewer) that it is read whole. */
function isReplaced({ id, lastSeq }: HeadRow, { byId }: Holding, bufferRounds: number): boolean {
  const held = byId.get(id)?.lastSeq;
  return held === undefined || lastSeq < held || lastSeq - held > bufferRounds;
}

async function inBatches<Asked, Row>(
  asked: readonly Asked[],
  readRows: (asked: readonly Asked[]) => Promise<Row[]>,
  atOnce = TABLES_AT_ONCE,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (let from = 0; from < asked.length; from += atOnce) {
    for (const row of await readRows(asked.slice(from, from + atOnce))) rows.push(row);
  }
  return rows;
}
