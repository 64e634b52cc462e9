import { baseline, probabilities, type State } from "./k7.ts";
import { createModel, type Model } from "./model.ts";
import type { Parameters } from "./parameters.ts";
import { nextColorPpm } from "./ppm.ts";

/** A band of a table as it is stored: upper end in hundredths, null for the last. */
export interface Band {
  name: string;
  below: number | null;
}

/**
 * The model of a table with these bands. `edge` is the declared edge of the house, null if it declares none. Parameters
 * default to K7's.
 */
export function modelOf(bands: readonly Band[], edge: number | null, parameters?: Parameters): Model {
  return createModel({ thresholds: thresholdsOf(bands), edge, ...(parameters === undefined ? {} : { parameters }) });
}

/** Lower ends of all bands but the lowest, in hundredths. */
function thresholdsOf(bands: readonly Band[]): number[] {
  return bands.flatMap(({ below }) => (below === null ? [] : [below]));
}

/** The next color and its baseline as issued, in ppm, lowest band first. */
export function nextColorOf(model: Model, state: State): { pPpm: number[]; basePpm: number[] } {
  return { pPpm: nextColorPpm(probabilities(model, state)), basePpm: nextColorPpm(baseline(model, state)) };
}
