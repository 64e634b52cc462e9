import type { PreparedForecast } from "./issue-store.ts";
import { hitProbability } from "../model/windows.ts";
import type { State } from "../model/k7.ts";
import type { Model } from "../model/model.ts";
import { ppmOf } from "../model/ppm.ts";
import { windowFeatures } from "./issue-windows.ts";
import type { OpenWindow } from "./window-store.ts";
import type { Band } from "../model/table-model.ts";

/**
 * What `published_now.forecast` holds: the newest on-time round known, the forecast after it where there is one, and
 * the windows that are open after it. Probabilities in ppm.
 */
export type PublishedForecast = {
  cutoff_seq: string;
  next_color: {
    forecast_id: string;
    issued_at: string;
    after_round_id: string;
    target_round_id: string | null;
    model: string;
    /** By color, in color order. */
    p_ppm: [color: string, ppm: number][];
    base_ppm: [color: string, ppm: number][];
    hash: string;
  } | null;
  /** By color in color order, then by target. */
  windows: PublishedWindow[];
};

/** A window that waits for its end. */
export type PublishedWindow = {
  feature: string;
  color: string;
  target: number;
  forecast_id: string;
  issued_at: string;
  after_round_id: string;
  model: string;
  /** As issued, and what was stated of them then. */
  rounds: number;
  p_ppm: number;
  base_ppm: number;
  /** What is left of it, and the chance that the color comes within that; null once it has come. Never scored. */
  now: { rounds_left: number; p_ppm: number | null };
  hash: string;
};

/** The next-color forecast of a table as it is published. */
export function publishedNextColor(
  bands: readonly Band[],
  forecast: PreparedForecast,
): NonNullable<PublishedForecast["next_color"]> {
  const byColor = (ppm: readonly number[]) => bands.map(({ name }, index): [string, number] => [name, ppm[index] ?? 0]);
  return {
    forecast_id: forecast.forecastId,
    issued_at: forecast.issuedAt,
    after_round_id: forecast.cutoffRoundId,
    target_round_id: forecast.targetRoundId,
    model: forecast.model,
    p_ppm: byColor(forecast.pPpm),
    base_ppm: byColor(forecast.basePpm),
    hash: forecast.hash,
  };
}

/** The windows of a table that are open, as they are published: `state` is what the model knows now. */
export function publishedWindows(
  model: Model,
  state: State,
  bands: readonly Band[],
  open: ReadonlyMap<string, OpenWindow>,
): PublishedWindow[] {
  return windowFeatures(bands).flatMap(({ feature, color, colorIndex, target }) => {
    const window = open.get(feature);
    if (window === undefined) return [];
    const roundsLeft = window.horizon - window.seen;
    return {
      feature,
      color,
      target,
      forecast_id: window.forecastId,
      issued_at: window.issuedAt,
      after_round_id: window.cutoffRoundId,
      model: model.name,
      rounds: window.horizon,
      p_ppm: window.pPpm[0] ?? 0,
      base_ppm: window.basePpm[0] ?? 0,
      now: {
        rounds_left: roundsLeft,
        p_ppm: window.hit ? null : ppmOf(hitProbability(model, state, colorIndex, roundsLeft)),
      },
      hash: window.hash,
    };
  });
}
