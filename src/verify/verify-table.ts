import { checkAccuracy } from "../forecasts/accuracy/recompute-store.ts";
import type { Transaction } from "../db/client.ts";
import { type LogFailure, verifyTableStatements } from "../record/log/verify-log.ts";
import { findOverdue, findUnapplied, type Grace, type Unapplied } from "../forecasts/score/unscored-store.ts";
import { checkAudits, type WrongAudit } from "./check-readings.ts";
import type { Wrong } from "./check-round.ts";
import { verifyCalibrations, type WrongCalibration } from "./verify-calibrations.ts";
import type { WrongPayload } from "./verify-payloads.ts";
import { verifyRevisions, type WrongRevision } from "./verify-revisions.ts";
import type { VerifiedTable } from "./verified-table-store.ts";
import { countAccuracyRows } from "./verify-store.ts";
import { verifyUnproven } from "./verify-unproven.ts";
import type { WalkFailure } from "./walk-state.ts";
import { walkTable } from "./walk.ts";

/** The first difference from what the facts give. */
export interface Failure extends Wrong {
  kind:
    | WalkFailure["kind"]
    | WrongRevision["kind"]
    | WrongCalibration["kind"]
    | WrongAudit["kind"]
    | LogFailure["kind"]
    | WrongPayload["kind"]
    | "model"
    | "accuracy";
  id: string;
}

/** How much was checked. */
export interface Checked {
  rounds: number;
  forecasts: number;
  scores: number;
  accuracy_rows: number;
  /** Calibration records, and the rounds that were replayed to prove the newest record of each table. */
  calibrations: number;
  replayed_rounds: number;
}

/** Before the first table. */
export const NOTHING: Checked = {
  rounds: 0,
  forecasts: 0,
  scores: 0,
  accuracy_rows: 0,
  calibrations: 0,
  replayed_rounds: 0,
};

/** What was checked of one table, and its first failure. */
export interface TableVerification {
  checked: Checked;
  failure: Failure | null;
}

/**
 * Recomputes everything that one table shows, up to its first failure.
 *
 * @param grace how long scores may be missing
 * @param progress called with the number of its rounds and forecasts checked so far
 */
export async function verifyTable(
  tx: Transaction,
  table: VerifiedTable,
  { grace, progress }: { grace: Grace; progress: (done: number) => void },
): Promise<TableVerification> {
  const checked = { ...NOTHING };
  return { checked, failure: await findFailure() };

  async function findFailure(): Promise<Failure | null> {
    // before the forecasts, whose replay begins with the bands and the edge of a calibration
    const damaged =
      (await verifyRevisions(tx, table)) ??
      (await verifyCalibrations(tx, table, (what, count) => (checked[what] += count)));
    if (damaged !== null) return damaged;
    const walked = await walkTable(tx, table, checked, progress);
    if ("kind" in walked) return walked;
    const contradicted = await verifyUnproven(tx, table, walked.unproven);
    if (contradicted !== null) return contradicted;
    const { unscored } = walked;
    const since = unscored && (await findOverdue(tx, { tableId: table.id, seq: unscored.seq }, grace));
    if (unscored !== null && since !== null) return unscoredFailure(unscored.forecastId, since);
    const unapplied = await findUnapplied(tx, table.id, grace);
    if (unapplied !== null) return unappliedFailure(table.name, unapplied);
    const wrong = await checkAccuracy(tx, table.id);
    if (wrong !== null) {
      const { kind, key, expected, found } = wrong;
      return { kind: "accuracy", id: `${table.name} ${kind} ${key}`, expected, found };
    }
    checked.accuracy_rows = await countAccuracyRows(tx, table.id);
    return (await checkAudits(tx, table, walked.audits)) ?? (await verifyTableStatements(tx, table));
  }
}

function unscoredFailure(forecastId: string, since: string): Failure {
  return {
    kind: "score",
    id: forecastId,
    expected: `a score soon after ${since}, when its round was received`,
    found: "none",
  };
}

function unappliedFailure(table: string, { roundId, since }: Unapplied): Failure {
  return {
    kind: "score",
    id: `${table} ${roundId}`,
    expected: `void forecasts on this round soon after ${since}, when it was disputed`,
    found: "a dispute that score-accuracy did not apply",
  };
}
