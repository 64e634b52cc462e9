/** Shared by the baseline programs: the windows to issue for a state, and outcomes. */
import { windowFeature, WINDOW_TARGETS } from "../../src/forecasts/model/features.ts";
import type { State } from "../../src/forecasts/model/k7.ts";
import type { Model } from "../../src/forecasts/model/model.ts";
import type { Band } from "../../src/forecasts/model/table-model.ts";
import { windowBaselinePpm, windowsOf } from "../../src/forecasts/model/windows.ts";
import type { Score } from "../../src/forecasts/score/scoring.ts";

/** A window as it is issued. */
export interface StatedWindow {
  feature: string;
  rounds: number;
  pPpm: number;
  basePpm: number;
}

/** The windows to issue for a state, without those that are open. */
export function windowsToIssue(
  model: Model,
  state: State,
  bands: readonly Band[],
  open: { has(feature: string): boolean },
): StatedWindow[] {
  return bands.flatMap(({ name }, color) => {
    const wanted = WINDOW_TARGETS.map((target) => windowFeature(name, target));
    if (wanted.every((feature) => open.has(feature))) return [];
    const windows = windowsOf(model, state, color);
    return wanted.flatMap((feature, index) => {
      const window = windows[index];
      if (window == null || open.has(feature)) return [];
      return { feature, ...window, basePpm: windowBaselinePpm(model, state, color, window.rounds) };
    });
  });
}

/** The stored outcome of a scored forecast: the index of the color, or 1 or 0 for a window. */
export function outcomeOf(score: Score): number {
  return score.kind === "window" ? Number(score.hit) : score.outcome;
}
