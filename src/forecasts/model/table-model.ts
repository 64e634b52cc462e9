import { baseline, forgetContext, learn, probabilities, type State } from "./k7.ts";
import { createModel, type Model } from "./model.ts";
import type { Parameters } from "./parameters.ts";
import { nextColorPpm } from "./ppm.ts";

/** A band of a table as it is stored: upper end in hundredths, null for the last. */
export interface Band {
  name: string;
  below: number | null;
}

/** The part of a round that the model learns. */
export interface LearnedRound {
  hundredths: number;
  color: string;
  /** Rounds are missing before this one. */
  afterGap: boolean;
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

/**
 * Learns the on-time rounds of a table, oldest first. The live path and every replay use this function, so that the same
 * rounds always give the same state.
 */
export function learnRounds(model: Model, state: State, bands: readonly Band[], rounds: Iterable<LearnedRound>): void {
  for (const round of rounds) {
    if (round.afterGap) forgetContext(model, state);
    learn(model, state, colorIndex(bands, round.color), round.hundredths >= model.x0Hundredths);
  }
}

/** The place of a color among a table's bands. */
export function colorIndex(bands: readonly Band[], color: string): number {
  const index = bands.findIndex((band) => band.name === color);
  if (index === -1) {
    throw new Error(
      `expected one of the table's colors ${bands.map((band) => band.name).join(", ")}, got ${color}; the round is damaged`,
    );
  }
  return index;
}

/** The next color and its baseline as issued, in ppm, lowest band first. */
export function nextColorOf(model: Model, state: State): { pPpm: number[]; basePpm: number[] } {
  return { pPpm: nextColorPpm(probabilities(model, state)), basePpm: nextColorPpm(baseline(model, state)) };
}
