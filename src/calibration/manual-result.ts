import type { Queryable } from "../db/client.ts";
import { figuresOf } from "../forecasts/accuracy/figures/figures.ts";
import { emptySums } from "../forecasts/accuracy/figures/sums.ts";
import { findLateRounds, orderOf, type LateRounds, type ReplayOrder } from "./backtest/range-store.ts";
import { snapshotOf, sumsOf, type Replay } from "./backtest/replay.ts";
import { findCalibration, type NewCalibration } from "./calibration-store.ts";
import { findLiveHash, findLiveRecord } from "./runs/live-record-store.ts";
import type { ManualRun } from "./runs/manual-run-store.ts";

/** Result of a manual run; `from` and `to` are round ids. */
export interface ManualResult {
  run_id: string;
  calibration_id: string;
  table: string;
  model: string;
  from: string;
  to: string;
  order: ReplayOrder;
  rounds: number;
  /** Replayed only in order of round ids, with the first twenty stretches of them; 0 in the other order. */
  late_rounds: number;
  late: LateRounds["stretches"];
  state_hash: string;
  log_loss: number | null;
  baseline_log_loss: number | null;
  brier: number | null;
}

/** The calibration of a finished run, compared with the live record of its table. */
export async function calibrationOf(sql: Queryable, run: ManualRun, replay: Replay): Promise<NewCalibration> {
  const snapshot = snapshotOf(replay);
  const live = await findLiveRecord(sql, run.tableId);
  const ofLive = live === null ? null : (sumsOf(live.sums).get("next_color") ?? emptySums());
  return {
    ...snapshot,
    tableId: run.tableId,
    kind: "manual",
    fromSeq: run.fromSeq,
    otherBands: run.thresholds !== null,
    liveStateHash:
      run.thresholds === null && run.seenSeq === null
        ? await findLiveHash(sql, { tableId: run.tableId, model: run.model, seq: run.toSeq })
        : null,
    promotion: null,
    compared:
      live === null || ofLive === null
        ? null
        : {
            calibration: live.id,
            model: live.model,
            version: live.version,
            to_seq: String(live.toSeq),
            state_hash: live.stateHash,
            n: String(ofLive.n),
            sum_ll: String(ofLive.sumLl),
            sum_ll_base: String(ofLive.sumLlBase),
            sum_brier: String(ofLive.sumBrier),
          },
  };
}

/** The result of a run that stored its calibration. */
export async function resultOf(sql: Queryable, run: string, calibrationId: string): Promise<ManualResult> {
  const row = await findCalibration(sql, calibrationId);
  if (row === null) throw new Error(`expected the calibration ${calibrationId} of run ${run}, found none`);
  const { log_loss, baseline_log_loss, brier } = figuresOf(
    "next_color",
    sumsOf(row.sums).get("next_color") ?? emptySums(),
  );
  return {
    run_id: run,
    calibration_id: calibrationId,
    table: row.table,
    model: row.model,
    from: row.fromRoundId ?? "",
    to: row.toRoundId ?? "",
    order: orderOf(row),
    rounds: Number(row.rounds),
    late_rounds: Number(row.lateRounds),
    late: (await findLateRounds(sql, row.tableId, { ...row, fromSeq: row.beginSeq })).stretches,
    state_hash: row.stateHash,
    log_loss,
    baseline_log_loss,
    brier,
  };
}
