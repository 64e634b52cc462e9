/**
 * Do past rounds change the odds? An e-process against every law of independent rounds.
 *
 * E = Π q(color) / max over fixed shares p of Π p(color), where q is a Bayesian mixture of the long-run shares, a
 * Markov chain and the hazard by the wait for the top color (universal inference: Wasserman, Ramdas and Balakrishnan
 * 2020). If rounds are independent, the chance that E ever reaches c is at most 1/c, for any shares. On real bustabit
 * rounds it never exceeds 1. Odds that change over time raise it too, so it does not prove that past rounds matter.
 *
 * The model fixes the length of every indexed array, hence the `!`.
 */
import { gapBin, type Model } from "../model/model.ts";
import { lnOf, multiply, one, type Product } from "./product.ts";

/** Memory of the transitions between colors. */
export type Dependence = {
  counts: number[];
  /** By previous and next color, row by row. */
  transitions: number[];
  /** Rounds by bin of the wait for the top color, and those of them with the top color. */
  trials: number[];
  hits: number[];
  previous: number | null;
  /** Rounds since the top color; null while unknown. */
  gap: number | null;
  /** Weights of long run, Markov chain and hazard. */
  weights: [number, number, number];
  /** Π q(color). */
  likelihood: Product;
};

/** Before the first round: nothing counted, equal weights. */
export function emptyDependence({ colors, parameters }: Model): Dependence {
  const zeros = (length: number) => Array.from({ length }, () => 0);
  return {
    counts: zeros(colors),
    transitions: zeros(colors * colors),
    trials: zeros(parameters.gapBinEnds.length + 1),
    hits: zeros(parameters.gapBinEnds.length + 1),
    previous: null,
    gap: null,
    weights: [1 / 3, 1 / 3, 1 / 3],
    likelihood: one(),
  };
}

/** Call after missing rounds: the previous color and the gap are unknown then. */
export function forgetPast(dependence: Dependence): void {
  dependence.previous = null;
  dependence.gap = null;
}

/** Updates the weights by the chance that each expert gave the color, then learns the color. */
export function watchDependence(dependence: Dependence, model: Model, color: number): void {
  const { counts, transitions, trials, hits, previous, gap, weights } = dependence;
  const { colors, parameters } = model;
  const top = colors - 1;
  const rounds = sum(counts);
  const share = (k: number) => (counts[k]! + model.longRunPriors[k]!) / (rounds + parameters.longRunPrior);

  const long = share(color);
  const bin = gap === null ? null : gapBin(model, gap);
  let markov = long;
  if (previous !== null) {
    const row = previous * colors;
    let seen = 0;
    for (let k = 0; k < colors; k++) seen += transitions[row + k]!;
    markov = (transitions[row + color]! + parameters.markovPrior * long) / (seen + parameters.markovPrior);
    transitions[row + color]! += 1;
  }
  let hazard = long;
  if (bin !== null) {
    const chance = (hits[bin]! + parameters.hazardPrior * share(top)) / (trials[bin]! + parameters.hazardPrior);
    hazard = color === top ? chance : ((1 - chance) * long) / (1 - share(top));
    trials[bin]! += 1;
    if (color === top) hits[bin]! += 1;
  }

  const mixture = weights[0] * long + weights[1] * markov + weights[2] * hazard;
  multiply(dependence.likelihood, mixture);
  // a share returns to the prior, as in K7, so that no weight becomes 0
  const kept = 1 - parameters.share;
  weights[0] = (kept * weights[0] * long) / mixture + parameters.share / 3;
  weights[1] = (kept * weights[1] * markov) / mixture + parameters.share / 3;
  weights[2] = (kept * weights[2] * hazard) / mixture + parameters.share / 3;
  counts[color]! += 1;
  dependence.previous = color;
  if (color === top) dependence.gap = 0;
  else if (gap !== null) dependence.gap = gap + 1;
}

/**
 * The current ln E: at most about 0 if rounds are independent.
 *
 * @example
 * lnDependence({ counts: [2, 0], likelihood: { value: 1, scale: 0 } }); // => 0
 * lnDependence({ counts: [1, 1], likelihood: { value: 2 ** 253, scale: -1 } }); // => -0.693147
 */
export function lnDependence({ counts, likelihood }: Pick<Dependence, "counts" | "likelihood">): number {
  const rounds = sum(counts);
  const best = counts.reduce((total, n) => (n === 0 ? total : total + n * Math.log(n / rounds)), 0);
  return lnOf(likelihood) - best;
}

function sum(values: readonly number[]): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
