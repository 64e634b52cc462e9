import type { PublishedCalibration } from "./calibration-store.ts";
import { figuresOf, type Figures } from "./figures.ts";
import type { PublishedForecast } from "./issue-store.ts";
import { PPM } from "./ppm.ts";
import { mergeSums, type Sums } from "./sums.ts";

/** Stands beside everything that could be taken for advice. */
export const NOTICE = "Information only. Rounds come from the house's random generator; no outcome is guaranteed. 18+.";

/**
 * Whether a table's forecast can be shown: `ready`; `waiting` (nothing was issued after the newest round);
 * `warming_up` (none was ever issued); `silent` (no round for longer than a house may be silent and be live); `paused`.
 */
export type ForecastState = "ready" | "waiting" | "warming_up" | "silent" | "paused";

/** What the state of a table's forecasts follows from; times in milliseconds of the database clock. */
export interface ForecastFacts {
  paused: boolean;
  /** What is published of the table, null before its first forecast. */
  published: PublishedForecast | null;
  /** The newest on-time round, null before the first. */
  newestSeq: number | null;
  lastPolledMs: number | null;
}

/** The state of a table's forecasts at a moment. */
export function forecastState(
  { paused, published, newestSeq, lastPolledMs }: ForecastFacts,
  nowMs: number,
  liveWindowMs: number,
): ForecastState {
  if (paused) return "paused";
  if (published === null) return "warming_up";
  if (lastPolledMs === null || nowMs - lastPolledMs >= liveWindowMs) return "silent";
  // a round that came in since has answered the forecast already: it is no forecast any more
  return published.next_color !== null && Number(published.cutoff_seq) === newestSeq ? "ready" : "waiting";
}

/** A forecast of the next color as callers see it. */
export interface ShownNextColor {
  forecast_id: string;
  issued_at: string;
  after_round_id: string;
  target_round_id: string | null;
  model: string;
  probabilities: Record<string, number>;
  baseline: Record<string, number>;
  hash: string;
}

/** The published next-color forecast with probabilities in six decimals; null unless the state is `ready`. */
export function showNextColor(published: PublishedForecast | null, state: ForecastState): ShownNextColor | null {
  if (state !== "ready" || published?.next_color == null) return null;
  // named one by one: jsonb keeps keys in an order of its own
  const { forecast_id, issued_at, after_round_id, target_round_id, model, p_ppm, base_ppm, hash } =
    published.next_color;
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

/** The calibration that the live state met last, as callers see it. */
export function showCalibration({ version, rounds, as_of }: PublishedCalibration): PublishedCalibration {
  return { version, rounds, as_of }; // jsonb keeps keys in an order of its own
}

function shares(ppm: readonly (readonly [color: string, ppm: number])[]): Record<string, number> {
  return Object.fromEntries(ppm.map(([color, value]) => [color, value / PPM]));
}

/** The sums of a feature over a period, of one table. */
export interface PeriodSums {
  model: string;
  feature: string;
  period: string;
  start: string;
  end: string;
  sums: Sums;
}

/** One row of what was measured, as callers see it; of a whole house `game` and `market` are null. */
export type ShownAccuracy = {
  feature: string;
  model: string;
  house: string;
  game: string | null;
  market: string | null;
  period: string;
  period_start: string;
  period_end: string;
} & Figures & { references: { name: string; log_loss: number; brier: number; skill: number }[] };

/**
 * Figures that are not shown yet, though everything they follow from is summed: each says how far to trust the others
 * only beside the references and windows that are still to come.
 */
const NOT_SHOWN_YET: Partial<Figures> = {
  rate_bounds: null,
  e_value: null,
  skill_interval_95: null,
  calibration_error: null,
  calibration_error_floor: null,
  reliability: [],
};

/** What was measured of a table, or of a house where `game` and `market` are null. */
export function showAccuracy(
  of: { house: string; game: string | null; market: string | null },
  { model, feature, period, start, end, sums }: PeriodSums,
): ShownAccuracy {
  return {
    feature,
    model,
    ...of,
    period,
    period_start: start,
    period_end: end,
    ...figuresOf(feature, sums),
    ...NOT_SHOWN_YET,
    references: [],
  };
}

/**
 * The tables of a house together: sums of the same model, feature and period merged, spanning all of them. In the order
 * in which features first come.
 */
export function mergePeriods(rows: readonly PeriodSums[]): PeriodSums[] {
  const groups = Map.groupBy(rows, ({ model, feature, period }) => `${model} ${feature} ${period}`);
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    // times are written so that they sort as texts
    const start = group.map((row) => row.start).reduce((a, b) => (a < b ? a : b));
    const end = group.map((row) => row.end).reduce((a, b) => (a > b ? a : b));
    return [{ ...first, start, end, sums: mergeSums(group.map(({ sums }) => sums)) }];
  });
}
