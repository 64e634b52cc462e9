import type { Sql, Transaction } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import { beginReplay, checkClaim, type Replay } from "./check-claims.ts";
import { checkForecast, FIRST_FORECAST } from "./check-forecast.ts";
import { checkRound, FIRST_ROUND, roundBefore, type Wrong } from "./check-round.ts";
import { checkScores } from "./check-scores.ts";
import { checkOverlap } from "./check-window.ts";
import { isWindow, NEXT_COLOR } from "../model/features.ts";
import { forecastIdOf } from "../chain/forecast-id.ts";
import { K7_1 } from "../model/parameters.ts";
import type { TouchedHour } from "../score/score-store.ts";
import { hourKey, verifyAccuracy, type WrongRow } from "./verify-accuracy.ts";
import { verifyAnchors } from "./verify-anchors.ts";
import { verifyCalibrations, type WrongCalibration } from "./verify-calibrations.ts";
import { verifyReadings, type WrongReading } from "./verify-readings.ts";
import { verifyRevisions, type WrongRevision } from "./verify-revisions.ts";
import { listPromotions, listStoredForecasts, findStrayOpen, type StoredForecast } from "./verify-forecasts-store.ts";
import { listStoredRounds, listTablesToVerify, withSnapshot, type VerifiedTable } from "./verify-store.ts";
import { listStoredScores } from "./verify-scores-store.ts";

/** The first thing found that is not what the facts give. */
export interface Failure extends Wrong {
  kind:
    | "round"
    | "forecast"
    | "score"
    | "table"
    | "root"
    | WrongRow["kind"]
    | WrongReading["kind"]
    | WrongRevision["kind"]
    | WrongCalibration["kind"];
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
  };
  first_failure: Failure | null;
}

/** Told how far the check has come: rounds and forecasts of a table checked, of all; at last hours, of the "roots". */
export type Progress = (table: string, done: number, total: number) => void;

const ROUNDS_PER_READ = 5000;
const FORECASTS_PER_READ = 2000;

/**
 * Recomputes every published figure from rounds and forecasts, in one snapshot of the database, of one table where
 * `tableId` is given, else of all.
 *
 * Rounds: the chain of history hashes, ids, colors, multipliers against their raw values and, where a fairness scheme
 * is declared, against their hashes. Revisions: what each says stood before it. Forecasts: the chain, the cutoff each names, that it was issued while nothing
 * could be known, that it says what the model had learned by then, and that no two windows of a feature overlap. Scores: each judged and scored anew. Accuracy: each hour summed anew, each published period against
 * its hours. Roots: each made anew, and none missing. Calibrations: each by its hash, the newest of each table's live
 * state by replay. Stops at the first failure.
 */
export async function verify(
  sql: Sql,
  { tableId, progress = () => undefined }: { tableId?: number | undefined; progress?: Progress | undefined } = {},
): Promise<Verification> {
  return withSnapshot(sql, async (tx) => {
    const checked = { rounds: 0, forecasts: 0, scores: 0, accuracy_rows: 0, calibrations: 0, replayed_rounds: 0 };
    for (const table of await listTablesToVerify(tx, tableId)) {
      const summed = new Map<string, TouchedHour>();
      const failure =
        (await verifyRounds(tx, table, summed, checked, progress)) ??
        (await verifyRevisions(tx, table)) ??
        // before the forecasts, whose replay begins with the bands and the edge of a calibration
        (await verifyCalibrations(tx, table, (what, count) => (checked[what] += count))) ??
        (await verifyForecasts(tx, table, summed, checked, progress)) ??
        (await verifyAccuracy(tx, table, summed, () => (checked.accuracy_rows += 1))) ??
        (await verifyReadings(tx, table));
      if (failure !== null) return { ok: false, checked, first_failure: failure };
    }
    const wrongRoot = await verifyAnchors(tx, tableId, (done, total) => progress("roots", done, total));
    return { ok: wrongRoot === null, checked, first_failure: wrongRoot };
  });
}

async function verifyRounds(
  tx: Transaction,
  table: VerifiedTable,
  summed: Map<string, TouchedHour>,
  checked: Verification["checked"],
  progress: Progress,
): Promise<Failure | null> {
  let before = FIRST_ROUND;
  const promotions = await listPromotions(tx, table.id);
  for (;;) {
    const rounds = await listStoredRounds(tx, table.id, before.seq, ROUNDS_PER_READ);
    for (const round of rounds) {
      if (round.seq !== before.seq + 1n) return missingRound(table, before.seq + 1n);
      const wrong = checkRound(table, round, before);
      if (wrong !== null) return { kind: "round", id: `${table.name} ${round.roundId}`, ...wrong };
      if (isCounted(table, round)) {
        const model = promotions.findLast(({ toSeq }) => toSeq < round.seq)?.model ?? K7_1.name;
        noteHour(summed, { tableId: table.id, model, feature: NEXT_COLOR, hour: round.receivedHour });
      }
      before = roundBefore(table, round, before);
      checked.rounds += 1;
    }
    progress(table.name, Number(before.seq), Number(table.lastSeq + table.forecastSeq));
    if (rounds.length < ROUNDS_PER_READ) break;
  }
  if (before.seq < table.lastSeq) return missingRound(table, before.seq + 1n);
  if (before.seq === table.lastSeq && before.historyHash === table.historyHash) return null;
  return tableFailure(
    table,
    `${table.lastSeq} rounds that end in ${table.historyHash}`,
    `${before.seq} rounds that end in ${before.historyHash}`,
  );
}

/** The hour rows count this round. */
function isCounted(
  { firstForecastAfterSeq, summedSeq }: VerifiedTable,
  { seq, late }: { seq: bigint; late: boolean },
): boolean {
  if (late || firstForecastAfterSeq === null || summedSeq === null) return false;
  return seq > firstForecastAfterSeq && seq <= summedSeq;
}

async function verifyForecasts(
  tx: Transaction,
  table: VerifiedTable,
  summed: Map<string, TouchedHour>,
  checked: Verification["checked"],
  progress: Progress,
): Promise<Failure | null> {
  let before = FIRST_FORECAST;
  const windows = new Map<string, StoredForecast>();
  let replay: Replay;
  try {
    replay = await beginReplay(tx, table);
  } catch (error) {
    return tableFailure(table, "a model state that says how the model began", reasonOf(error));
  }
  for (;;) {
    const forecasts = await listStoredForecasts(tx, table.id, before.seq, FORECASTS_PER_READ);
    const last = forecasts.at(-1);
    if (last === undefined) break;
    const scores = Map.groupBy(
      await listStoredScores(tx, table.id, { afterSeq: before.seq, upToSeq: last.seq }),
      ({ forecastSeq }) => forecastSeq,
    );
    for (const forecast of forecasts) {
      if (forecast.seq !== before.seq + 1n) return missingForecast(table, before.seq + 1n);
      const wrong =
        checkForecast(table.name, forecast, before) ??
        (await checkClaim(tx, replay, forecast)) ??
        checkSequence(windows, forecast);
      if (wrong !== null) return { kind: "forecast", id: forecast.forecastId, ...wrong };
      checked.forecasts += 1;
      const own = scores.get(forecast.seq) ?? [];
      const wrongScore = checkScores(forecast, own, table.bands, table.summedSeq);
      if (wrongScore !== null) return { kind: "score", id: forecast.forecastId, ...wrongScore };
      checked.scores += own.length;
      if (own.length > 0) noteHour(summed, hourOf(table, forecast));
      if (forecast.seq === 1n && forecast.cutoffSeq !== table.firstForecastAfterSeq) {
        return tableFailure(
          table,
          `a first forecast after seq ${table.firstForecastAfterSeq}`,
          `one after seq ${forecast.cutoffSeq}`,
        );
      }
      before = forecast;
    }
    progress(table.name, Number(table.lastSeq + before.seq), Number(table.lastSeq + table.forecastSeq));
  }
  if (before.seq < table.forecastSeq) return missingForecast(table, before.seq + 1n);
  const stray = await findStrayOpen(tx, table.id, before.seq);
  if (stray !== null)
    return tableFailure(table, "only forecasts that are there to wait for a score", `forecast ${stray}`);
  if (before.seq === table.forecastSeq && before.hash === table.forecastHash) return null;
  return tableFailure(
    table,
    `${table.forecastSeq} forecasts that end in ${table.forecastHash}`,
    `${before.seq} forecasts that end in ${before.hash}`,
  );
}

/** Of each model and feature the window before must have ended. */
function checkSequence(windows: Map<string, StoredForecast>, forecast: StoredForecast): Wrong | null {
  if (!isWindow(forecast.feature)) return null;
  const key = `${forecast.model} ${forecast.feature}`;
  const before = windows.get(key);
  windows.set(key, forecast);
  return before === undefined ? null : checkOverlap(forecast, before);
}

function missingRound({ name }: VerifiedTable, seq: bigint): Failure {
  return { kind: "round", id: `${name} seq ${seq}`, expected: `a round with seq ${seq}`, found: "none" };
}

function missingForecast({ id }: VerifiedTable, seq: bigint): Failure {
  return { kind: "forecast", id: forecastIdOf(id, seq), expected: `a forecast with seq ${seq}`, found: "none" };
}

function tableFailure({ name }: VerifiedTable, expected: string, found: string): Failure {
  return { kind: "table", id: name, expected, found };
}

function hourOf({ id }: VerifiedTable, { model, feature, issueHour }: StoredForecast): TouchedHour {
  return { tableId: id, model, feature, hour: issueHour };
}

function noteHour(summed: Map<string, TouchedHour>, hour: TouchedHour): void {
  summed.set(hourKey(hour), hour);
}
