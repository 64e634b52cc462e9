/**
 * K7 for one table: its bands, its edge, and the constants that derive from them.
 *
 * The model fixes the length of every indexed array, hence the `!`.
 */
import { modelName } from "./model-name.ts";
import { EXPERTS, K7_1, type Parameters } from "./parameters.ts";

/** The bands and the edge of a table, and the constants that derive from them. */
export type Model = {
  /** See `modelName`. */
  readonly name: string;
  /** Lower ends of all bands but the lowest, in hundredths, ascending. */
  readonly thresholds: readonly number[];
  /** Declared edge of the house; null if none is declared. */
  readonly edge: number | null;
  readonly parameters: Parameters;
  /** Number of colors, K. */
  readonly colors: number;
  /** `reachedX0` of `learn` is true if the round's hundredths are at least this. */
  readonly x0Hundredths: number;
  /** The offset of each part in the memory of a state. */
  readonly at: Layout;
  /** Bin of each gap up to the last closed bin; greater gaps are in the open bin. */
  readonly binOfGap: Uint8Array;
  /** x0 and thresholds as multipliers. */
  readonly x0: number;
  readonly multipliers: Float64Array;
  /** Prior counts: of theory shares by color, and of rounds at or above x0. */
  readonly longRunPriors: Float64Array;
  readonly theoryPriorReached: number;
};

/** Offsets into `State.memory`. */
type Layout = {
  readonly weights: number;
  readonly counts: number;
  readonly theory: number;
  readonly recent: number;
  readonly transitions: number;
  readonly hits: number;
  readonly trials: number;
  readonly previous: number;
  readonly gap: number;
  readonly length: number;
};

/** Indexes of the two experts that depend on the previous rounds. */
export const MARKOV = EXPERTS.indexOf("M1");
export const HAZARD = EXPERTS.indexOf("G");
export const EXPERT_COUNT = EXPERTS.length;

/** Models by name. Tables with equal bands and edge share one. */
const models = new Map<string, Model>();
const MOST_MODELS = 1_000;

/** Most bands of a table. */
export const COLORS_MAX = 8;

/**
 * The model of one table.
 *
 * @param thresholds lower ends of the bands above the lowest, in hundredths: 200 and 1000 for below 2, below 10, above
 * @param edge declared edge of the house in [0, 1), null if it declares none
 * @throws RangeError on fewer than 2 or more than 8 bands, thresholds not ascending or not above 1.00, or a wrong edge
 */
export function createModel({
  thresholds,
  edge,
  parameters = K7_1,
}: {
  thresholds: readonly number[];
  edge: number | null;
  parameters?: Parameters;
}): Model {
  checkBands(thresholds, edge);
  const name = modelName({ thresholds, edge, parameters });
  const known = models.get(name);
  if (known !== undefined) return known;
  const colors = thresholds.length + 1;
  const survival = 1 - (edge ?? parameters.assumedEdge);
  const x0 = parameters.x0Hundredths / 100;
  const multipliers = Float64Array.from(thresholds, (hundredths) => hundredths / 100);
  const theory = new Float64Array(colors);
  writeTheory(theory, 0, survival, multipliers);
  const model: Model = {
    name,
    thresholds: [...thresholds],
    edge,
    parameters,
    colors,
    x0Hundredths: parameters.x0Hundredths,
    at: layoutOf(colors, parameters.gapBinEnds.length + 1),
    binOfGap: gapBins(parameters.gapBinEnds),
    x0,
    multipliers,
    longRunPriors: theory.map((share) => parameters.longRunPrior * share),
    theoryPriorReached: parameters.theoryPrior * (survival / x0),
  };
  if (models.size >= MOST_MODELS) models.clear();
  models.set(name, model);
  return model;
}

/** The hazard bin of a known gap (rounds since the top color). */
export function gapBin(model: Model, gap: number): number {
  return gap < model.binOfGap.length ? model.binOfGap[gap]! : model.parameters.gapBinEnds.length;
}

/**
 * Writes the shares of the bands when P(M ≥ x) = c/x, clamped so that every band has a chance: the lowest at least 0.001,
 * each other at least a hundredth of the rest above it.
 */
export function writeTheory(into: Float64Array, from: number, c: number, multipliers: Float64Array): void {
  let above = 1;
  for (let j = 0; j < multipliers.length; j++) {
    const most = j === 0 ? 0.999 : 0.99 * above;
    let reaches = c / multipliers[j]!;
    if (reaches > most) reaches = most;
    into[from + j] = above - reaches;
    above = reaches;
  }
  into[from + multipliers.length] = above;
}

function layoutOf(colors: number, bins: number): Layout {
  const counts = EXPERT_COUNT;
  const theory = counts + colors;
  const recent = theory + 6;
  const transitions = recent + colors;
  const hits = transitions + colors * colors;
  const trials = hits + bins;
  const previous = trials + bins;
  const gap = previous + 1;
  return { weights: 0, counts, theory, recent, transitions, hits, trials, previous, gap, length: gap + 1 };
}

function gapBins(ends: readonly number[]): Uint8Array {
  const bins = new Uint8Array(ends.at(-1)! + 1);
  for (let gap = 0; gap < bins.length; gap++) bins[gap] = ends.findIndex((end) => gap <= end);
  return bins;
}

function checkBands(thresholds: readonly number[], edge: number | null): void {
  if (thresholds.length < 1 || thresholds.length >= COLORS_MAX)
    throw new RangeError(
      `expected 2 to ${COLORS_MAX} colors, got ${thresholds.length + 1}; correct the table's colors`,
    );
  thresholds.forEach((hundredths, j) => {
    const least = j === 0 ? 100 : thresholds[j - 1]!;
    if (!Number.isSafeInteger(hundredths) || hundredths <= least)
      throw new RangeError(`expected a threshold in hundredths above ${least}, got ${hundredths}; list them ascending`);
  });
  if (edge !== null && !(edge >= 0 && edge < 1))
    throw new RangeError(`expected a house edge from 0 to below 1, got ${edge}; 0.01 means one percent`);
}
