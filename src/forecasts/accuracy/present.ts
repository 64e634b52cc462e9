import { bestLogLoss, figuresOf, hitFigures, poolSums } from "./figures/figures.ts";
import type { PublishedForecast } from "../published-forecast.ts";
import { parameterSetOf } from "../model/model-name.ts";
import { PPM } from "../model/ppm.ts";
import { mergeReferenceSums, referenceFigures, type ReferenceSums } from "./figures/reference-sums.ts";
import type { Sums } from "./figures/sums.ts";

/** Shown next to everything that could be understood as advice. */
export const NOTICE = "Information only. Rounds come from the house's random generator; no outcome is guaranteed. 18+.";

/**
 * Whether a table's forecast can be shown: `ready`; `waiting` (none was issued after the newest round, on time or not);
 * `warming_up` (none was ever issued); `silent` (no round for longer than a live house may have none); `paused`.
 */
export type ForecastState = "ready" | "waiting" | "warming_up" | "silent" | "paused";

/** The input of {@link forecastState}; times in milliseconds of the database clock. */
export interface ForecastFacts {
  paused: boolean;
  /** Null before the table's first forecast. */
  published: PublishedForecast | null;
  /** The newest on-time round, null before the first. */
  newestSeq: number | null;
  /** The newest responses contained late rounds only. */
  isLate: boolean;
  lastPolledMs: number | null;
}

/** The state of a table's forecasts at a moment. */
export function forecastState(
  { paused, published, newestSeq, isLate, lastPolledMs }: ForecastFacts,
  nowMs: number,
  liveWindowMs: number,
): ForecastState {
  if (paused) return "paused";
  if (published === null) return "warming_up";
  if (lastPolledMs === null || nowMs - lastPolledMs >= liveWindowMs) return "silent";
  // when a newer round exists, the forecast is decided already
  return !isLate && published.nextColor !== null && published.cutoffSeq === newestSeq ? "ready" : "waiting";
}

/**
 * The published next-color forecast as callers see it, with probabilities in six decimals; null unless the state is
 * `ready`.
 */
export function showNextColor(published: PublishedForecast | null, state: ForecastState) {
  if (state !== "ready" || published?.nextColor == null) return null;
  const { forecast_id, issued_at, after_round_id, target_round_id, model, p_ppm, base_ppm, hash } = published.nextColor;
  return {
    forecast_id,
    issued_at,
    after_round_id,
    target_round_id,
    model,
    probabilities: shares(p_ppm),
    baseline: shares(base_ppm),
    hash,
  };
}

/** The accuracy next to an open window covers this period. */
const MEASURED_PERIOD = "30d";

/**
 * The open windows of a table as callers see them, each with the accuracy of its feature from `measured`; none unless
 * the state is `ready` or `waiting`.
 */
export function showWindows(
  published: PublishedForecast | null,
  state: ForecastState,
  measured: readonly PeriodSums[],
) {
  if (published === null || (state !== "ready" && state !== "waiting")) return [];
  return published.windows.map((window) => {
    const { feature, color, target, forecast_id, issued_at, after_round_id, model, rounds, now, hash } = window;
    const row = measured.find(
      (one) => one.feature === feature && one.model === model && one.period === MEASURED_PERIOD,
    );
    return {
      feature,
      color,
      target,
      forecast_id,
      issued_at,
      after_round_id,
      rounds,
      probability: window.p_ppm / PPM,
      baseline: window.base_ppm / PPM,
      now: { rounds_left: now.rounds_left, probability: now.p_ppm && now.p_ppm / PPM, scored: false },
      measured: row === undefined ? null : showMeasured(row),
      hash,
    };
  });
}

function showMeasured({ sums }: PeriodSums) {
  const { sample_size, hit_rate, interval_95 } = hitFigures(sums);
  return { period: MEASURED_PERIOD, sample_size, hit_rate, interval_95 };
}

function shares(ppm: readonly (readonly [color: string, ppm: number])[]): Record<string, number> {
  return Object.fromEntries(ppm.map(([color, value]) => [color, value / PPM]));
}

/** The sums of a feature of one table over a period, and those of the references on the same forecasts. */
export interface PeriodSums {
  model: string;
  feature: string;
  period: string;
  start: string;
  end: string;
  /** When the newest round that is counted was received, and its id; null for several tables. */
  asOf: string | null;
  asOfRoundId: string | null;
  sums: Sums;
  references: ReferenceSums;
}

/** One row of accuracy as callers see it: of a table, or of a house if `game` and `market` are null. */
export function showAccuracy(
  of: { house: string; game: string | null; market: string | null },
  { model, feature, period, start, end, asOf, asOfRoundId, sums, references }: PeriodSums,
) {
  return {
    feature,
    model,
    ...of,
    period,
    period_start: start,
    period_end: end,
    as_of: asOf,
    as_of_round_id: asOfRoundId,
    ...figuresOf(feature, sums),
    references: referenceFigures(references, bestLogLoss(sums)),
  };
}

/**
 * The tables of a house together: sums of the same parameter set, feature and period merged, spanning all of them; `model` is
 * the parameter set. In the order in which features first occur.
 */
export function mergePeriods(rows: readonly PeriodSums[]): PeriodSums[] {
  const groups = Map.groupBy(rows, ({ model, feature, period }) => `${parameterSetOf(model)} ${feature} ${period}`);
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    // the format of times sorts as text
    const start = group.map((row) => row.start).reduce((a, b) => (a < b ? a : b));
    const end = group.map((row) => row.end).reduce((a, b) => (a > b ? a : b));
    const asOf = group.map((row) => row.asOf).reduce((a, b) => (a === null || b === null ? null : a < b ? a : b)); // the earliest
    const asOfRoundId = group.length === 1 ? first.asOfRoundId : null;
    const sums = poolSums(group.map((row) => row.sums));
    const references = mergeReferenceSums(group.map((row) => row.references));
    return [{ ...first, model: parameterSetOf(first.model), start, end, asOf, asOfRoundId, sums, references }];
  });
}
