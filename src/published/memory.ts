import type { Sql } from "../db/client.ts";
import type { Log } from "../log.ts";
import { statusOf, type Status } from "../houses/status.ts";
import { readCheckpoint, readHeads, readHouses, readVersions } from "./store.ts";
import { ACCURACY_AT_ONCE, createAccuracyReads, createTableReads, inBatches, isReplaced } from "./table-reads.ts";
import { applyReading, emptyHolding, type Holding, type Table } from "./tables.ts";
import { followClock } from "./database-clock.ts";
import { startReadLoop, type ReadLoop } from "./read-loop.ts";

/** The usual interval of reading all tables without a notification. */
export const READ_EVERY_MS = 5_000;
/** The same for a replica: a notification is sent by the primary, and may arrive before the row. */
const READ_REPLICA_EVERY_MS = 1_000;
/** With notifications of some tables, all are read if the last such read is older: `ageSeconds` counts from it. */
const ALL_EVERY_MS = 1_000;
/** Houses are read with any other read, but not more often than this: they change seldom and without a notification. */
const HOUSES_EVERY_MS = 1_000;
/**
 * The accuracy of a table is ten features over five periods: reading it with each round would cost more than the rest.
 */
const ACCURACY_EVERY_MS = 1_000;

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
    readEveryMs = READ_EVERY_MS,
  }: { bufferRounds: number; liveWindowSeconds: number; isReplica?: boolean; readEveryMs?: number },
  log: Log,
): Promise<Memory> {
  const holding = emptyHolding();
  const clock = followClock();
  const reads = createTableReads(sql, holding, bufferRounds);
  const readAccuracy = createAccuracyReads(sql, log);
  /** Tables whose accuracy changed and has not been read. */
  const staleAccuracy = new Map<number, number>();
  let readAt = 0;
  /** The lag of the database behind its primary when all tables were last read. */
  let behindMs = 0;
  let accuracyReadAt = 0;
  let housesReadAt = 0;
  let checkpoint: string | null = null;
  let accuracyTimer: NodeJS.Timeout | null = null;
  let loop: ReadLoop | null = null;

  /** Null for all tables. */
  async function readAndApply(tableIds: readonly number[] | null): Promise<void> {
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
    const sets = await reads.sets(heads, replaced);
    const rounds = await reads.rounds(heads, replaced);
    for (const [id, version] of versions.accuracy) {
      if (holding.byId.get(id)?.accuracyVersion !== version) staleAccuracy.set(id, version);
    }
    // settling is paused, so the pending forecasts change with each round
    for (const { id, hasEnded } of heads) if (hasEnded) staleAccuracy.set(id, versions.accuracy.get(id) ?? 0);
    const withAccuracy = at - accuracyReadAt >= ACCURACY_EVERY_MS;
    const most = accuracyReadAt === 0 ? Infinity : ACCURACY_AT_ONCE;
    const stale = withAccuracy ? [...staleAccuracy].slice(0, most) : [];
    const accuracy = await readAccuracy(stale);
    applyReading(
      holding,
      {
        houses,
        heads,
        sets: Map.groupBy(sets, ({ tableId }) => tableId),
        replaced,
        rounds: new Map(rounds),
        accuracy: new Map(accuracy),
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
        loop?.refresh([...staleAccuracy.keys()]);
      }, ACCURACY_EVERY_MS).unref();
    }
  }

  await readAndApply(null);

  loop = startReadLoop(readAndApply, isReplica ? READ_REPLICA_EVERY_MS : readEveryMs, log);
  const liveWindowMs = liveWindowSeconds * 1_000;
  const nowMs = () => clock.nowMs();

  return {
    tables: holding,
    statusOf({ enabled, house }) {
      const newestPolledAgeMs = house.newestPolledMs === null ? null : nowMs() - house.newestPolledMs;
      return statusOf({ newestPolledAgeMs, paused: house.paused, enabled: house.enabled && enabled }, liveWindowMs);
    },
    clock: () => ({ nowMs: nowMs(), liveWindowMs }),
    checkpoint: () => checkpoint,
    ageSeconds: () => Math.floor((performance.now() - readAt + behindMs) / 1_000),
    refresh: (tableIds) => loop?.refresh(tableIds),
    async close() {
      if (accuracyTimer !== null) clearTimeout(accuracyTimer);
      await loop?.close();
    },
  };
}
