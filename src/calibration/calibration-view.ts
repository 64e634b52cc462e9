import { z } from "zod";
import type { CalibrationRow } from "./calibration-store.ts";
import type { Compared, Comparison } from "./compare.ts";
import { figuresOf, type Figures } from "../forecasts/accuracy/figures/figures.ts";
import { EXPERTS } from "../forecasts/model/parameters.ts";
import { pitHeights } from "../forecasts/accuracy/figures/pit.ts";
import { orderOf } from "./backtest/range-store.ts";
import { carryOf, sumsOf } from "./backtest/replay.ts";
import { emptySums } from "../forecasts/accuracy/figures/sums.ts";

export type Summary = ReturnType<typeof summaryOf>;

/** The summary of a calibration for lists. */
export function summaryOf(row: CalibrationRow) {
  const nextColor = sumsOf(row.sums).get("next_color") ?? emptySums();
  const { log_loss, baseline_log_loss, skill, brier } = figuresOf("next_color", nextColor);
  return {
    id: row.id,
    table: row.table,
    model: row.model,
    version: row.version,
    kind: row.kind,
    from: row.fromRoundId,
    to: row.toRoundId,
    /** `round`: by the number of the round id, with late rounds; `taken`: on-time rounds in the order of storage. */
    order: orderOf(row),
    rounds: row.rounds,
    late_rounds: row.lateRounds,
    created_at: row.createdAt,
    state_hash: row.stateHash,
    live_state_hash: row.liveStateHash,
    /** Null if the replay did not reach the seq of the live state. */
    met_live_state: row.liveStateHash === null ? null : row.liveStateHash === row.stateHash,
    promotion:
      row.promotion === null
        ? null
        : { from: row.promotion.from, by: row.promotion.by, at: row.createdAt, reason: row.promotion.reason },
    log_loss,
    baseline_log_loss,
    skill,
    brier,
  };
}

/** Results of the windows of a feature in a replay. */
function windowOf(feature: string, figures: Figures) {
  const { sample_size, expected_rate, hit_rate, interval_95, e_value, voids, reliability } = figures;
  return {
    feature,
    sample_size,
    expected_rate,
    hit_rate,
    interval_95,
    z: figures.z,
    e_value,
    voids: voids.gap,
    reliability,
  };
}

export type Detail = ReturnType<typeof detailOf>;

/** A calibration in full. */
export function detailOf(row: CalibrationRow) {
  const sums = sumsOf(row.sums);
  const nextColor = sums.get("next_color") ?? emptySums();
  const figures = figuresOf("next_color", nextColor);
  const open = new Map(carryOf(row.carry).windows.map((window) => [window.feature, window]));
  return {
    ...summaryOf(row),
    begin_seq: row.beginSeq,
    from_seq: row.fromSeq,
    to_seq: row.toSeq,
    sample_size: figures.sample_size,
    baseline_brier: figures.baseline_brier,
    skill_interval_95: figures.skill_interval_95,
    calibration_error: figures.calibration_error,
    calibration_error_floor: figures.calibration_error_floor,
    // jsonb reorders keys
    weights: Object.fromEntries(EXPERTS.map((expert) => [expert, row.weights[expert] ?? 0])),
    windows: [...sums]
      .filter(([feature]) => feature !== "next_color")
      .map(([feature, ofWindow]) => {
        const last = open.get(feature);
        return {
          ...windowOf(feature, figuresOf(feature, ofWindow)),
          /** Of the window that is open at the end; null if none is. */
          rounds: last?.rounds ?? null,
          probability: last === undefined ? null : last.p / 1e6,
        };
      }),
    waits: pitHeights(nextColor.pit),
    compared_with_live: comparedOf(row),
    reliability: figures.reliability,
  };
}

/** The live record with which a manual run was compared at its end; null if there was none. */
function comparedOf({ compared, stateHash }: CalibrationRow) {
  const parsed = comparedSchema.nullable().parse(compared);
  if (parsed === null) return null;
  const { n, sum_ll, sum_ll_base, sum_brier, state_hash, ...rest } = parsed;
  return {
    ...rest,
    rounds: n,
    state_hash,
    same_state: state_hash === stateHash,
    log_loss: n === 0 ? null : sum_ll / n / 1e6,
    baseline_log_loss: n === 0 ? null : sum_ll_base / n / 1e6,
    brier: n === 0 ? null : sum_brier / n / 1e12,
  };
}

const integer = z.string().transform(Number);
const comparedSchema = z.object({
  calibration: z.string(),
  model: z.string(),
  version: z.number(),
  to_seq: integer,
  state_hash: z.string(),
  n: integer,
  sum_ll: integer,
  sum_ll_base: integer,
  sum_brier: integer,
});

/** One side of a comparison: the figures of the next color, and those of each window. */
export type Side = ReturnType<typeof sideOf>;

/** The figures of a calibration for a comparison. */
export function sideOf({ figures, ...rest }: Compared) {
  const ofNextColor = figures.find(({ feature }) => feature === "next_color")?.figures;
  return {
    ...rest,
    sample_size: ofNextColor?.sample_size ?? 0,
    log_loss: ofNextColor?.log_loss ?? null,
    baseline_log_loss: ofNextColor?.baseline_log_loss ?? null,
    skill: ofNextColor?.skill ?? null,
    skill_interval_95: ofNextColor?.skill_interval_95 ?? null,
    brier: ofNextColor?.brier ?? null,
    calibration_error: ofNextColor?.calibration_error ?? null,
    calibration_error_floor: ofNextColor?.calibration_error_floor ?? null,
    reliability: ofNextColor?.reliability ?? [],
    windows: figures.filter(({ feature }) => feature !== "next_color").map((one) => windowOf(one.feature, one.figures)),
  };
}

/** The comparison of two calibrations: the figures of each feature side by side. */
export function comparisonOf({ table, a, b, paired }: Comparison) {
  return { table, a: sideOf(a), b: sideOf(b), paired };
}
