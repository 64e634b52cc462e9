import type { Witness } from "../config/witnesses.ts";
import type { Sql } from "../db/client.ts";
import { type Unstated, verifyKeptCheckpoint, verifyLogs, verifyStated } from "../record/log/verify-log.ts";
import { findForgedModel } from "../forecasts/model/models-store.ts";
import { findNow, findUndescribed, listTablesToVerify, withSnapshot } from "./verify-store.ts";
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
    const wrongCheckpoint = checkpoint === undefined ? null : await verifyKeptCheckpoint(tx, checkpoint);
    if (wrongCheckpoint !== null) return failed(wrongCheckpoint);
    const forged = await findForgedModel(tx);
    if (forged !== null) {
      const { name: id, found } = forged;
      return failed({ kind: "model", id, expected: "bands, edge and constants of this name", found });
    }
    const undescribed = await findUndescribed(tx, tableId);
    if (undescribed !== null) {
      const { name: id, ...wrong } = undescribed;
      return failed({ kind: "table", id, ...wrong });
    }
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
    // a checkpoint proves only hashes: that they are those of the entries, and these those of the rows, is checked here
    let unknownCosignatures = 0;
    if (tableId === undefined || checkpoint !== undefined) {
      const logs = await verifyLogs(tx, { witnesses, progress: (done, total) => progress("log", done, total) });
      checked.log_entries = logs.entries;
      ({ unknownCosignatures } = logs);
      if (logs.failure !== null) return failed(logs.failure);
    }
    const { failure, unstated } = await verifyStated(tx, tableId);
    if (failure !== null) return failed(failure);
    return {
      ok: true,
      checked,
      first_failure: null,
      ...(unknownCosignatures === 0 ? {} : { unknown_cosignatures: unknownCosignatures }),
      ...(unstated === null ? {} : { unstated }),
    };
  });
}
