import type { Witness } from "../config/witnesses.ts";
import type { Sql, Transaction } from "../db/client.ts";
import { type Unstated, verifyKeptCheckpoint, verifyLogs, verifyStated } from "../record/log/verify-log.ts";
import { findForgedModel } from "../forecasts/model/models-store.ts";
import { findIncomplete, listTablesToVerify } from "./verified-table-store.ts";
import { findNow, withSnapshot } from "./verify-store.ts";
import { type Checked, type Failure, NOTHING } from "./verify-table.ts";
import { verifyPayloads } from "./verify-payloads.ts";
import { type Threads, verifyTables } from "./verify-tables.ts";

/** What was checked, and the first failure if there is one. */
export interface Verification {
  ok: boolean;
  checked: Checked & {
    /** Entries of the transparency log, if all tables are checked or a checkpoint is given. */
    log_entries: number;
    /** Stored response bodies, if they are checked. */
    payloads?: number;
  };
  first_failure: Failure | null;
  /**
   * Checkpoints whose time of cosigning is by a key that is not configured, if there are any: it cannot be checked, and
   * `sealed` counts it.
   */
  unknown_cosignatures?: number;
  /** Forecasts that the transparency log does not state, if it is not signed yet or paused. */
  unstated?: Unstated;
}

/** Called with the table, or "log" for the entries of the log, the number checked so far, and the total. */
export type Progress = (what: string, done: number, total: number) => void;

/**
 * Recomputes every published figure from rounds, in one snapshot of the database, of one table if `tableId` is given,
 * else of all: rounds, forecasts and scores in one walk (see {@link walkTable}), corrections, calibrations by their
 * hashes and by replay, accuracy rows, audits, and the transparency log with its statements: all about chains and the
 * audit log, the newest about each table's accuracy. With `checkpoint`, an older signed note, everything that it covers
 * must still be in the log, which is then checked for one table, too. Stops at the first failure.
 */
export async function verify(
  sql: Sql,
  {
    tableId,
    checkpoint,
    payloads = false,
    witnesses = [],
    unscoredMinutes,
    asOf,
    threads,
    progress = () => undefined,
  }: {
    tableId?: number | undefined;
    checkpoint?: string | undefined;
    /** Whether stored response bodies are read and compared with their hashes. */
    payloads?: boolean;
    witnesses?: readonly Witness[];
    /** How long scores may be missing; five minutes by default. */
    unscoredMinutes?: number;
    /** The time of the data; now by default, and that of its backup for a restored database. */
    asOf?: string;
    /** If given, large records of several tables are verified in threads. */
    threads?: Threads | undefined;
    progress?: Progress | undefined;
  } = {},
): Promise<Verification> {
  return withSnapshot(sql, async (tx) => {
    const checked: Verification["checked"] = { ...NOTHING, log_entries: 0 };
    const failed = (first_failure: Failure): Verification => ({ ok: false, checked, first_failure });
    const early = await findEarlyFailure(tx, { tableId, checkpoint });
    if (early !== null) return failed(early);
    const tables = await listTablesToVerify(tx, tableId);
    // of this snapshot: threads begin theirs later
    const grace = { asOf: asOf ?? (await findNow(tx)), minutes: unscoredMinutes };
    for (const { checked: one, failure } of await verifyTables(tx, tables, { grace, threads, progress })) {
      for (const [what, count] of Object.entries(one) as [keyof Checked, number][]) checked[what] += count;
      if (failure !== null) return failed(failure);
    }
    if (payloads) {
      const bodies = await verifyPayloads(tx, tableId);
      checked.payloads = bodies.payloads;
      if (bodies.failure !== null) return failed(bodies.failure);
    }
    const log = await verifyLog(tx, {
      tableId,
      isWhole: tableId === undefined || checkpoint !== undefined,
      witnesses,
      progress,
    });
    checked.log_entries = log.entries;
    return log.failure === null ? { ok: true, checked, first_failure: null, ...log.reported } : failed(log.failure);
  });
}

/** What is checked before the rows of the tables: a kept checkpoint, the models, and that no table is left out. */
async function findEarlyFailure(
  tx: Transaction,
  { tableId, checkpoint }: { tableId: number | undefined; checkpoint: string | undefined },
): Promise<Failure | null> {
  const wrongCheckpoint = checkpoint === undefined ? null : await verifyKeptCheckpoint(tx, checkpoint);
  if (wrongCheckpoint !== null) return wrongCheckpoint;
  const forged = await findForgedModel(tx);
  if (forged !== null)
    return { kind: "model", id: forged.name, expected: "bands, edge and constants of this name", found: forged.found };
  const incomplete = await findIncomplete(tx, tableId);
  if (incomplete === null) return null;
  const { name: id, expected, found } = incomplete;
  return { kind: "table", id, expected, found };
}

/**
 * Checks the logs if `isWhole`, and that the newest one states the forecasts. A checkpoint proves only hashes: that they
 * are those of the entries, and these those of the rows, is checked here.
 */
async function verifyLog(
  tx: Transaction,
  {
    tableId,
    isWhole,
    witnesses,
    progress,
  }: { tableId: number | undefined; isWhole: boolean; witnesses: readonly Witness[]; progress: Progress },
): Promise<{
  entries: number;
  failure: Failure | null;
  reported: Pick<Verification, "unknown_cosignatures" | "unstated">;
}> {
  const { entries, unknownCosignatures, failure } = isWhole
    ? await verifyLogs(tx, { witnesses, progress: (done, total) => progress("log", done, total) })
    : { entries: 0, unknownCosignatures: 0, failure: null };
  if (failure !== null) return { entries, failure, reported: {} };
  const stated = await verifyStated(tx, tableId);
  const reported = {
    ...(unknownCosignatures === 0 ? {} : { unknown_cosignatures: unknownCosignatures }),
    ...(stated.unstated === null ? {} : { unstated: stated.unstated }),
  };
  return { entries, failure: stated.failure, reported };
}
