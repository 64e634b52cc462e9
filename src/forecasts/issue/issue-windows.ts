import { windowFeature } from "../model/features.ts";
import type { State } from "../model/k7.ts";
import type { Model } from "../model/model.ts";
import type { Band } from "../model/table-model.ts";
import { WINDOW_TARGETS, windowBaselinePpm, windowsOf } from "../model/windows.ts";

/** A window that a table may have. */
export interface WindowFeature {
  /** `window:<color>:<target>`. */
  feature: string;
  color: string;
  colorIndex: number;
  /** Percent. */
  target: number;
}

/** The windows of a table in the order in which they are issued and shown: by color in color order, then by target. */
export function windowFeatures(bands: readonly Band[]): WindowFeature[] {
  return bands.flatMap(({ name: color }, colorIndex) =>
    WINDOW_TARGETS.map((target) => ({ feature: windowFeature(color, target), color, colorIndex, target })),
  );
}

/** What a window says when it is issued. */
export interface StatedWindow {
  feature: string;
  rounds: number;
  pPpm: number;
  basePpm: number;
}

/**
 * The windows that follow from a state, those of `open` features left out: of each at most one is open at a time. A
 * color so rare that 400 rounds stay below a target has none of that target.
 */
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
