import type { Sql } from "../../db/client.ts";
import { checkAccuracy } from "../../accuracy/recompute-store.ts";
import {
  type LogFailure,
  verifyKeptCheckpoint,
  verifyLogs,
  verifyTableStatements,
} from "../../record/log/verify-log.ts";
import type { Witness } from "../../record/log/witness-client.ts";
import { findForgedModel } from "../model/models-store.ts";
import { listUnscored, type Unscored } from "../score/unscored-store.ts";
import { checkAudits, type WrongAudit } from "./check-readings.ts";
import type { Wrong } from "./check-round.ts";
import { verifyCalibrations, type WrongCalibration } from "./verify-calibrations.ts";
import { verifyRevisions, type WrongRevision } from "./verify-revisions.ts";
import { countAccuracyRows, listTablesToVerify, withSnapshot } from "./verify-store.ts";
import { walkTable, type WalkFailure } from "./walk.ts";

/** The first thing found that is not what the facts give. */
export interface Failure extends Wrong {
  kind:
    | WalkFailure["kind"]
    | WrongRevision["kind"]
    | WrongCalibration["kind"]
    | WrongAudit["kind"]
    | LogFailure["kind"]
    | "model"
    | "accuracy";
  id: string;
}

/** What was checked, and the first failure if there is one. */
export interface Verification {
  ok: boolean;
  checked: {
    rounds: number;
    forecasts: number;
    scores: number;
    accuracy_rows: number;
    /** Records, and the rounds that were replayed to prove the newest of each table. */
    calibrations: number;
    replayed_rounds: number;
    /** Of the transparency log, when all tables are checked. */
    log_entries: number;
  };
  first_failure: Failure | null;
}

/** Receives how far the check is: rounds and forecasts of a table checked, of all; at last entries of the "log". */
export type Progress = (table: string, done: number, total: number) => void;

/**
 * Recomputes every published figure from rounds, in one snapshot of the database, of one table when `tableId` is given, else
 * of all: rounds, forecasts and scores in one walk (see {@link walkTable}), corrections, calibrations by their hashes and by
 * replay, accuracy rows, audits, and the transparency log with every statement in it. With `checkpoint`, a signed note that
 * somebody kept, all that it covers must still be there. Stops at the first failure.
 */
export async function verify(
  sql: Sql,
  {
    tableId,
    checkpoint,
    witnesses = [],
    unscoredMinutes,
    progress = () => undefined,
  }: {
    tableId?: number | undefined;
    checkpoint?: string | undefined;
    witnesses?: readonly Witness[];
    /** How long an ended forecast may be without a score; five minutes by default. */
    unscoredMinutes?: number;
    progress?: Progress | undefined;
  } = {},
): Promise<Verification> {
  return withSnapshot(sql, async (tx) => {
    const checked = {
      rounds: 0,
      forecasts: 0,
      scores: 0,
      accuracy_rows: 0,
      calibrations: 0,
      replayed_rounds: 0,
      log_entries: 0,
    };
    const failed = (first_failure: Failure): Verification => ({ ok: false, checked, first_failure });
    const wrongCheckpoint = checkpoint === undefined ? null : await verifyKeptCheckpoint(tx, checkpoint);
    if (wrongCheckpoint !== null) return failed(wrongCheckpoint);
    const forged = await findForgedModel(tx);
    if (forged !== null) {
      const { name: id, found } = forged;
      return failed({ kind: "model", id, expected: "bands, edge and constants of this name", found });
    }
    for (const table of await listTablesToVerify(tx, tableId)) {
      // before the forecasts, whose replay begins with the bands and the edge of a calibration
      const damaged =
        (await verifyRevisions(tx, table)) ??
        (await verifyCalibrations(tx, table, (what, count) => (checked[what] += count)));
      if (damaged !== null) return failed(damaged);
      const [before, total] = [checked.rounds + checked.forecasts, Number(table.lastSeq + table.forecastSeq)];
      const walked = await walkTable(tx, table, checked, (done) => progress(table.name, done - before, total));
      if ("kind" in walked) return failed(walked);
      const [unscored] = await listUnscored(tx, { tableId: table.id, minutes: unscoredMinutes });
      if (unscored !== undefined) return failed(unscoredFailure(unscored));
      const wrong = await checkAccuracy(tx, table.id);
      if (wrong !== null) {
        const { kind, key, expected, found } = wrong;
        return failed({ kind: "accuracy", id: `${table.name} ${kind} ${key}`, expected, found });
      }
      checked.accuracy_rows += await countAccuracyRows(tx, table.id);
      const wrongAudit = await checkAudits(tx, table, walked.audits);
      if (wrongAudit !== null) return failed(wrongAudit);
      const contradicted = await verifyTableStatements(tx, table);
      if (contradicted !== null) return failed(contradicted);
    }
    if (tableId !== undefined) return { ok: true, checked, first_failure: null };
    const logs = await verifyLogs(tx, { witnesses, progress: (done, total) => progress("log", done, total) });
    checked.log_entries = logs.entries;
    return logs.failure === null ? { ok: true, checked, first_failure: null } : failed(logs.failure);
  });
}

function unscoredFailure({ forecastId, since }: Unscored): Failure {
  return {
    kind: "score",
    id: forecastId,
    expected: `a score soon after ${since}, when its round was received`,
    found: "none",
  };
}
