/**
 * Windows: "this color within the next n rounds, with probability p".
 *
 * Each expert gives the chance that the color is absent for n rounds, and the chances are mixed by weight. 1 − (1 − p)^n
 * with the p of the next round would be wrong by 6 points if rounds depend on each other.
 *
 * The model fixes the length of every indexed array, hence the `!`.
 */
import { WINDOW_ROUNDS_MAX, WINDOW_TARGETS } from "./features.ts";
import { baseline, probabilities, type State } from "./k7.ts";
import { EXPERT_COUNT, gapBin, HAZARD, MARKOV, type Model } from "./model.ts";
import { ppmOf } from "./ppm.ts";

/** The smallest number of rounds that reaches a target, and its exact probability. */
export type Window = { rounds: number; pPpm: number };

/**
 * The windows of one color in the order of `WINDOW_TARGETS`, in one walk; null if 400 rounds stay below the target.
 *
 * The stated probability is that of the rounds, not the target: whole rounds do not meet a target exactly. With `targets`
 * only the first ones are computed; the others are null.
 */
export function windowsOf(
  model: Model,
  state: State,
  color: number,
  targets: number = WINDOW_TARGETS.length,
): (Window | null)[] {
  const found: (Window | null)[] = [null, null, null];
  let next = 0;
  depart(model, state, color);
  for (let n = 1; n <= WINDOW_ROUNDS_MAX; n++) {
    const p = 1 - step(model, state, color, n);
    while (p >= WINDOW_TARGETS[next]! / 100) {
      found[next] = { rounds: n, pPpm: ppmOf(p) };
      next += 1;
      if (next === targets) return found;
    }
  }
  return found;
}

/** Probability, not rounded, that the color occurs within the next `rounds` rounds, given the current state. */
export function hitProbability(model: Model, state: State, color: number, rounds: number): number {
  let survival = 1;
  depart(model, state, color);
  for (let n = 1; n <= rounds; n++) survival = step(model, state, color, n);
  return 1 - survival;
}

/** The same for several numbers of rounds, ascending, in one walk. */
export function hitProbabilities(model: Model, state: State, color: number, rounds: readonly number[]): number[] {
  depart(model, state, color);
  let [n, survival] = [0, 1];
  return rounds.map((wanted) => {
    while (n < wanted) survival = step(model, state, color, ++n);
    return 1 - survival;
  });
}

/** The baseline of a window from the long-run share: 1 − (1 − share)^rounds by repeated multiplication, in ppm. */
export function windowBaselinePpm(model: Model, state: State, color: number, rounds: number): number {
  const miss = 1 - baseline(model, state)[color]!;
  let survival = 1;
  for (let n = 1; n <= rounds; n++) survival *= miss;
  return ppmOf(1 - survival);
}

/** Begins a walk: survival is 1 for every expert, and M1 starts at the previous color. */
function depart(model: Model, state: State, color: number): void {
  if (!Number.isInteger(color) || color < 0 || color >= model.colors)
    throw new RangeError(`expected a color from 0 to ${model.colors - 1}, got ${color}; check the bands of the table`);
  probabilities(model, state);
  state.survivals.fill(1);
  for (let i = 0; i < EXPERT_COUNT; i++) state.misses[i] = 1 - state.experts[i * model.colors + color]!;
  state.ahead.fill(0);
  const previous = state.memory[model.at.previous]!;
  if (previous >= 0) state.ahead[previous] = 1;
}

/**
 * The n-th step of a walk: the probability that the color is absent for n rounds.
 *
 * Five experts have the same chance every round. M1 multiplies its vector by its matrix with the color absorbing. G lets
 * the gap grow, for the top color only. Without context M1 and G equal LR, as in `probabilities`.
 */
function step(model: Model, state: State, color: number, n: number): number {
  const { colors, at } = model;
  const { memory, survivals, misses, hazards } = state;
  const gap = memory[at.gap]!;
  const hazardGrows = color === colors - 1 && gap >= 0;
  const knowsPrevious = memory[at.previous]! >= 0;
  let survival = 0;
  for (let i = 0; i < EXPERT_COUNT; i++) {
    let own: number;
    if (i === MARKOV && knowsPrevious) own = push(state, colors, color, n);
    else own = survivals[i]! * (i === HAZARD && hazardGrows ? 1 - hazards[gapBin(model, gap + n - 1)]! : misses[i]!);
    survivals[i] = own;
    survival += memory[at.weights + i]! * own;
  }
  return survival;
}

/** One step of M1: the mass that is still away from the color. Alternates between the two halves of `ahead`. */
function push(state: State, colors: number, color: number, n: number): number {
  const { ahead, transitions } = state;
  const from = n % 2 === 1 ? 0 : colors;
  const to = colors - from;
  let mass = 0;
  for (let k = 0; k < colors; k++) {
    let reaches = 0;
    if (k !== color) for (let j = 0; j < colors; j++) reaches += ahead[from + j]! * transitions[j * colors + k]!;
    ahead[to + k] = reaches;
    mass += reaches;
  }
  return mass;
}
