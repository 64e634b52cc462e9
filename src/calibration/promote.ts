import type { Sql, Transaction } from "../db/client.ts";
import { UsageError } from "../errors.ts";
import { findCalibration, recordHash, type NewCalibration, type WholeCalibration } from "./calibration-store.ts";
import { lockState } from "../pass/add.ts";
import { findNewestPromotion, readTable, switchTo, type NewestPromotion } from "./promotion-store.ts";
import { replayUpTo, resumeReplay, snapshotOf, type Replay } from "./backtest/replay.ts";

/** Rounds that may remain when the table is locked: 10 ms in which no round is stored. */
const ROUNDS_UNDER_LOCK = 1000n;
const ROUNDS_PER_CHUNK = 20_000;

/** Who promotes a calibration, and why. */
export interface Decision {
  by: string;
  reason: string;
}

/** Result of a promotion. */
export interface Promoted {
  calibration_id: string;
  promoted_from: string;
  table: string;
  model: string;
  /** The previous live model. */
  previous_model: string;
  version: number;
  to_seq: string;
  rounds: number;
  state_hash: string;
  by: string;
  reason: string;
  as_of: string;
}

/** Options of a promotion. */
export interface PromotionSteps {
  signal?: AbortSignal | undefined;
  progress?: ((done: number, of: number) => void) | undefined;
  /** Rounds per chunk, 5 ms per thousand; fewer in a process that has other work. */
  roundsPerChunk?: number | undefined;
  /** Runs under the table's lock before the switch; if it throws, nothing changes. */
  check?: ((tx: Transaction) => Promise<void>) | undefined;
  /** Runs last in the same transaction, such as an entry in the audit log. */
  also?: ((tx: Transaction, promoted: Promoted) => Promise<void>) | undefined;
}

/** Another calibration of the table was promoted after the decision. */
export class PromotedMeanwhile extends Error {
  override name = "PromotedMeanwhile";
}

/**
 * A check of {@link PromotionSteps} that refuses a promotion if another one was made since the decision.
 *
 * @param known the id of the table's newest promotion at the decision; null if it had none
 */
export function refuseLaterPromotion(
  { id, name }: { id: number; name: string },
  known: string | null,
): (tx: Transaction) => Promise<void> {
  return async (tx) => {
    const newest = await findNewestPromotion(tx, id);
    if ((newest?.id ?? null) !== known) throw new PromotedMeanwhile(meanwhile(name, newest));
  };
}

function meanwhile(table: string, newest: NewestPromotion | null): string {
  if (newest === null) return `the promotions of ${table} have changed meanwhile; nothing was changed`;
  const { by, at, from, reason: why } = newest;
  return `${by} promoted calibration ${from} of ${table} at ${at} meanwhile (${why}); nothing was changed. Check that calibration, then promote yours if it is still needed`;
}

/**
 * Makes a calibration the live state of its table.
 *
 * Its state learns the on-time rounds since, without a lock until fewer than 1,000 remain, then under the table's lock up
 * to the newest; that transaction switches the live state, its model and the new record. Old records stay, issued
 * forecasts stay and are scored, and rolling runs continue from here.
 *
 * @throws UsageError if the calibration does not exist or can never be live
 * @throws Error if the record is damaged
 */
export async function promoteCalibration(
  sql: Sql,
  id: string,
  decision: Decision,
  { signal, progress, also, check, roundsPerChunk = ROUNDS_PER_CHUNK }: PromotionSteps = {},
): Promise<Promoted> {
  const from = await findCalibration(sql, id);
  if (from === null) throw new UsageError(`there is no calibration ${id}; \`calibration list\` shows them`);
  const replay = await takenUp(sql, from);
  for (;;) {
    const { newestSeq } = await readTable(sql, from.tableId);
    const first = replay.seq;
    if (newestSeq - first >= ROUNDS_UNDER_LOCK) {
      await replayUpTo(sql, replay, newestSeq, {
        roundsPerChunk,
        signal,
        afterChunk: () => Promise.resolve(progress?.(Number(replay.seq - first), Number(newestSeq - first))),
      });
      signal?.throwIfAborted();
      continue;
    }
    const promoted = await switchUnderLock(sql, from, replay, { ...decision, also, check });
    if (promoted !== null) return promoted;
  }
}

async function takenUp(sql: Sql, from: WholeCalibration): Promise<Replay> {
  const { bands } = await readTable(sql, from.tableId);
  if (from.otherBands) {
    throw new UsageError(
      `calibration ${from.id} has other bands than ${from.table}; its forecasts would be about other colors`,
    );
  }
  if (from.seenSeq !== null) throw new UsageError(notLive(from));
  const found = recordHash(from);
  if (found !== from.recordHash)
    throw new Error(
      `expected calibration ${from.id} to hash to ${from.recordHash}, got ${found}; it was changed, calibrate again`,
    );
  const replay = resumeReplay({ tableId: from.tableId, bands, hasOtherBands: false }, from);
  if (replay.backtest.model.colors !== bands.length)
    throw new UsageError(
      `calibration ${from.id} has ${replay.backtest.model.colors} colors and ${from.table} ${bands.length}; calibrate again`,
    );
  return replay;
}

/** The error for a record by round id, which cannot be promoted. */
export function notLive({ id, lateRounds }: Pick<WholeCalibration, "id" | "lateRounds">): string {
  return `calibration ${id} replayed rounds by id, ${lateRounds} of them late; only a replay of on-time rounds can be live: run it with \`--order taken\` and promote that`;
}

/** Null if more rounds remain than may be learned under the lock. */
function switchUnderLock(
  sql: Sql,
  from: WholeCalibration,
  replay: Replay,
  { by, reason, also, check }: Decision & Pick<PromotionSteps, "also" | "check">,
): Promise<Promoted | null> {
  return sql.begin(async (tx) => {
    const live = await lockState(tx, from.tableId);
    await check?.(tx);
    const newestSeq = live.head.newestSeq ?? 0n;
    if (newestSeq - replay.seq >= ROUNDS_UNDER_LOCK) return null;
    await replayUpTo(tx, replay, newestSeq, { roundsPerChunk: ROUNDS_PER_CHUNK });
    const snapshot = snapshotOf(replay);
    const calibration: NewCalibration = {
      ...snapshot,
      tableId: from.tableId,
      kind: "promoted",
      fromSeq: from.beginSeq,
      otherBands: false,
      liveStateHash: snapshot.stateHash,
      compared: null,
      promotion: { from: from.id, by, reason },
    };
    const { id, version, asOf } = await switchTo(tx, calibration, live);
    const promoted: Promoted = {
      calibration_id: id,
      promoted_from: from.id,
      table: from.table,
      model: snapshot.model,
      previous_model: live.head.model,
      version,
      to_seq: String(snapshot.toSeq),
      rounds: Number(snapshot.rounds),
      state_hash: snapshot.stateHash,
      by,
      reason,
      as_of: asOf,
    };
    await also?.(tx, promoted);
    return promoted;
  });
}
