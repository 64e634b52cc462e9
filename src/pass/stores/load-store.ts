import type { Pipeline, Queryable, Transaction } from "../../db/client.ts";
import { isLockError } from "../../db/errors.ts";
import type { Color } from "../../rounds/colors.ts";
import type { FormatState } from "../../rounds/notices/format-watch.ts";
import type { UnknownGap } from "../../rounds/gaps/gaps.ts";
import { listUnknownGaps } from "../../rounds/gaps/gaps-store.ts";
import type { NoticeKind } from "../../rounds/notices/notices.ts";
import type { HeldBack } from "../../rounds/intake.ts";
import type { KnownRound } from "../../rounds/round.ts";
import { FORECAST_SETS, HEADS, type ForecastSetRow, type HeadRow, type SnapshotRow } from "../compute/rows.ts";
import { HELD_ROUNDS, type ReplayRound } from "../compute/state.ts";
import { fromDatabase, optionalTime } from "../compute/times.ts";
import { asSnapshot, type HeadFacts, listHeads, listSnapshots } from "./head-store.ts";
import { listFreeHeads, type LockTimeout, shareHeads } from "../../tables/heads-store.ts";
import { asHeld, asKnown, listHeld, listNewest } from "./known-store.ts";
import { asReplay, listReplays, REPLAYED_AT_ONCE } from "./replay-store.ts";
import { listOpenSets, listSettled } from "./set-store.ts";

/** The stored rows that the state of a table is made from. */
export interface StoredTable extends Omit<HeadFacts, "badResponses" | "formatSince"> {
  head: HeadRow;
  /** Of the head's model; null before the first. */
  snapshot: SnapshotRow | null;
  /** Rounds after the snapshot, and those on time after the oldest open set, by seq; see {@link listReplayRows} for more. */
  replay: ReplayRound[];
  /** False when `replay` does not reach the head. */
  isWhole: boolean;
  /** The open sets and the newest one, by cutoff. */
  sets: ForecastSetRow[];
  /** Forecasts of the open sets that are settled. */
  settled: ReadonlySet<bigint>;
  /** The newest rounds by id, newest first. */
  known: [string, KnownRound][];
  /** Rounds with a quarantined item, by round id. */
  heldBack: Map<string, HeldBack>;
  /** Older rounds than those in `heldBack` may have a quarantined item too. */
  isHeldCut: boolean;
  /** Bands of the cutoffs of `sets` with another palette than the table's, by cutoff_seq. */
  otherBands: ReadonlyMap<bigint, readonly Color[]>;
  /** Gaps of unknown size that are not filled, newest first. */
  unknownGaps: UnknownGap[];
  /** When each open notice was opened, by kind. */
  notices: Map<NoticeKind, string>;
  format: FormatState;
}

/**
 * Reads everything that the states of tables are made from, in one round trip, and waits for passes that are being
 * written: afterwards no older holder of the lease can commit one. Leaves out tables without a head, and those that
 * another session keeps locked, as a repair does.
 */
export async function loadTables(
  pipeline: Pipeline,
  tableIds: readonly number[],
  lockTimeout: LockTimeout,
): Promise<StoredTable[]> {
  try {
    return await loadFree(pipeline, tableIds, lockTimeout);
  } catch (error) {
    if (!isLockError(error)) throw error;
    const free = await listFreeHeads(pipeline, tableIds);
    return free.length === 0 ? [] : loadFree(pipeline, free, lockTimeout);
  }
}

/** @throws the database's error if a head stays locked */
async function loadFree(
  pipeline: Pipeline,
  tableIds: readonly number[],
  lockTimeout: LockTimeout,
): Promise<StoredTable[]> {
  const [, , ...rows] = await pipeline.transact([
    pipeline`select set_config('lock_timeout', ${lockTimeout}, true)`,
    shareHeads(pipeline, tableIds),
    ...loadStatements(pipeline, tableIds),
  ]);
  return tablesOf(rows);
}

/** The same for one table, without waiting: in a transaction with its head locked, or in one snapshot. */
export async function loadTable(tx: Transaction, tableId: number): Promise<StoredTable | null> {
  const [heads, snapshots, replay, sets, settled, known, held, gaps, notices] = loadStatements(tx, [tableId]);
  const [table] = tablesOf([
    await heads,
    await snapshots,
    await replay,
    await sets,
    await settled,
    await known,
    await held,
    await gaps,
    await notices,
  ]);
  return table ?? null;
}

function loadStatements(sql: Queryable, tableIds: readonly number[]) {
  const ids = [...tableIds];
  return [
    listHeads(sql, ids),
    listSnapshots(sql, ids),
    listReplays(sql, ids),
    listOpenSets(sql, ids),
    listSettled(sql, ids),
    listNewest(sql, ids),
    listHeld(sql, ids),
    listUnknownGaps(sql, ids),
    listNotices(sql, ids),
  ] as const;
}

type Loaded<Statements extends readonly unknown[]> = { readonly [Key in keyof Statements]: Awaited<Statements[Key]> };

function tablesOf([heads, snapshots, replay, sets, settled, known, held, gaps, notices]: Loaded<
  ReturnType<typeof loadStatements>
>): StoredTable[] {
  const replayOf = Map.groupBy(replay, ({ tableId }) => tableId);
  const setsOf = Map.groupBy(sets, ({ tableId }) => tableId);
  const heldOf = Map.groupBy(held, ({ table_id }) => table_id);
  const gapsOf = Map.groupBy(gaps, ({ tableId }) => tableId);
  const noticesOf = Map.groupBy(notices, ({ table_id }) => table_id);
  const snapshotOf = new Map(snapshots.map((row) => [row.tableId, row]));
  const settledOf = new Map(settled.map((row) => [row.table_id, row.seqs]));
  const knownOf = new Map(known.map((row) => [row.table_id, row]));
  return heads.map((row) => {
    const { tableId, house, game, market, roundIds, settings, resets, bands, version, hasUnread, reading } = row;
    const rounds = (replayOf.get(tableId) ?? []).map(asReplay);
    const heldRounds = heldOf.get(tableId) ?? [];
    return {
      tableId,
      house,
      game,
      market,
      roundIds,
      settings,
      resets,
      bands,
      version,
      head: HEADS.parse(row),
      snapshot: asSnapshot(snapshotOf.get(tableId)),
      replay: rounds,
      isWhole: rounds.length < REPLAYED_AT_ONCE,
      sets: (setsOf.get(tableId) ?? []).map(FORECAST_SETS.parse),
      settled: new Set(settledOf.get(tableId)),
      known: asKnown(knownOf.get(tableId)),
      heldBack: new Map(heldRounds.map((one): [string, HeldBack] => [one.round_id, asHeld(one)])),
      isHeldCut: heldRounds.reduce((sum, { items }) => sum + items, 0) >= HELD_ROUNDS,
      hasUnread,
      otherBands: new Map(
        (setsOf.get(tableId) ?? []).flatMap(({ cutoffSeq, otherBands }): [bigint, Color[]][] =>
          otherBands === null ? [] : [[cutoffSeq, otherBands]],
        ),
      ),
      unknownGaps: roundIds === "opaque" ? (gapsOf.get(tableId) ?? []) : [],
      notices: new Map((noticesOf.get(tableId) ?? []).map(({ kind, opened_at }) => [kind, fromDatabase(opened_at)])),
      format: { badResponses: row.badResponses, since: optionalTime(row.formatSince) },
      reading,
    };
  });
}

function listNotices(sql: Queryable, ids: readonly number[]) {
  return sql<{ table_id: number; kind: NoticeKind; opened_at: string }[]>`
    select table_id, kind, opened_at::text
    from notices
    where table_id = any(${ids}::integer[])
      and closed_at is null`;
}

/** The number of tables. */
export async function countTables(sql: Queryable): Promise<number> {
  const [row] = await sql<{ tables: number }[]>`select count(*)::integer as tables from tables`;
  return row?.tables ?? 0;
}
