/**
 * K7: the probability of each color of the next round, as a Bayesian mixture of seven experts with a fixed share.
 *
 * Score first, then learn: `probabilities` forecasts the round after all learned ones, and `learn` then adds that round.
 * Only + − × ÷, summed in index order, without exp, log and pow, so that a replay gives the same bits on every IEEE-754
 * machine. Nothing here allocates after `emptyState`; one core learns and forecasts several hundred thousand rounds per
 * second.
 *
 * The model fixes the length of every indexed array, hence the `!`.
 */
import { EXPERT_COUNT, gapBin, HAZARD, MARKOV, writeTheory, type Model } from "./model.ts";

/** What was learned of a table (`memory`) and what derives from it (the rest, rebuilt when `current` is false). */
export type State = {
  /** The only saved part: see `Layout`. The previous color and the gap are −1 while unknown. */
  readonly memory: Float64Array;
  /** Probabilities by expert and color, expert by expert. */
  readonly experts: Float64Array;
  /** The mixture, by color. */
  readonly mixture: Float64Array;
  /** M1's rows by previous and next color, and G's hazard by gap bin. */
  readonly transitions: Float64Array;
  readonly hazards: Float64Array;
  /** Buffers for one walk over future rounds: survival and chance to miss by expert, and M1's two color vectors. */
  readonly survivals: Float64Array;
  readonly misses: Float64Array;
  readonly ahead: Float64Array;
  current: boolean;
};

/** The state before the first round: prior weights, no counts, previous color and gap unknown. */
export function emptyState(model: Model): State {
  const memory = new Float64Array(model.at.length);
  memory.set(model.parameters.priorWeights, model.at.weights);
  memory[model.at.previous] = -1;
  memory[model.at.gap] = -1;
  return stateOf(model, memory);
}

/** The state with this memory; the array is not copied. */
export function stateOf(model: Model, memory: Float64Array): State {
  return {
    memory,
    experts: new Float64Array(EXPERT_COUNT * model.colors),
    mixture: new Float64Array(model.colors),
    transitions: new Float64Array(model.colors * model.colors),
    hazards: new Float64Array(model.parameters.gapBinEnds.length + 1),
    survivals: new Float64Array(EXPERT_COUNT),
    misses: new Float64Array(EXPERT_COUNT),
    ahead: new Float64Array(2 * model.colors),
    current: false,
  };
}

/** Call after missing rounds: M1 and G forecast as LR until the previous color and the gap are known. */
export function forgetContext(model: Model, state: State): void {
  state.memory[model.at.previous] = -1;
  state.memory[model.at.gap] = -1;
  state.current = false;
}

/**
 * Probability of each color of the next round, lowest band first.
 *
 * The array belongs to the state and is valid until the next `learn`; copy it to keep it.
 */
export function probabilities(model: Model, state: State): Float64Array {
  if (!state.current) refresh(model, state);
  return state.mixture;
}

/** The long-run shares (expert LR), the baseline published next to every forecast. Valid until the next `learn`. */
export function baseline(model: Model, state: State): Float64Array {
  if (!state.current) refresh(model, state);
  return state.experts.subarray(0, model.colors);
}

/** Weights of the experts in the order of `EXPERTS`, as a copy; they sum to 1 up to rounding. */
export function weights(model: Model, state: Pick<State, "memory">): number[] {
  return Array.from(state.memory.subarray(model.at.weights, model.at.weights + EXPERT_COUNT));
}

/**
 * Learns the next round.
 *
 * Updates the weights first, by the probability that each expert gave; then the counts.
 *
 * @param color index of the band the round fell in
 * @param reachedX0 whether its multiplier was at least `model.x0Hundredths`
 * @throws RangeError on a color the model does not have
 */
export function learn(model: Model, state: State, color: number, reachedX0: boolean): void {
  const { colors, at, parameters } = model;
  if (!Number.isInteger(color) || color < 0 || color >= colors)
    throw new RangeError(`expected a color from 0 to ${colors - 1}, got ${color}; check the bands of the table`);
  if (!state.current) refresh(model, state);
  const { memory, experts } = state;

  const { share, priorWeights } = parameters;
  let evidence = 0;
  for (let i = 0; i < EXPERT_COUNT; i++) {
    const w = memory[at.weights + i]! * experts[i * colors + color]!;
    memory[at.weights + i] = w;
    evidence += w;
  }
  for (let i = 0; i < EXPERT_COUNT; i++)
    memory[at.weights + i] = ((1 - share) * memory[at.weights + i]!) / evidence + share * priorWeights[i]!;

  memory[at.counts + color]! += 1;

  const reached = reachedX0 ? 1 : 0;
  for (let j = 0; j < 3; j++) {
    const decay = j === 0 ? 1 : parameters.theoryDecays[j - 1]!;
    memory[at.theory + 2 * j] = memory[at.theory + 2 * j]! * decay + 1;
    memory[at.theory + 2 * j + 1] = memory[at.theory + 2 * j + 1]! * decay + reached;
  }

  for (let k = 0; k < colors; k++) memory[at.recent + k]! *= parameters.recentDecay;
  memory[at.recent + color]! += 1;

  const previous = memory[at.previous]!;
  if (previous >= 0) memory[at.transitions + previous * colors + color]! += 1;
  memory[at.previous] = color;

  const isTop = color === colors - 1;
  const gap = memory[at.gap]!;
  if (gap >= 0) {
    const bin = gapBin(model, gap);
    memory[at.trials + bin]! += 1;
    if (isTop) memory[at.hits + bin]! += 1;
  }
  if (isTop) memory[at.gap] = 0;
  else if (gap >= 0) memory[at.gap] = gap + 1;

  state.current = false;
}

/** Rebuilds everything that derives from the memory. */
function refresh(model: Model, state: State): void {
  const { colors, at, parameters } = model;
  const { memory, experts, mixture, transitions, hazards } = state;
  const top = colors - 1;

  let rounds = 0;
  for (let k = 0; k < colors; k++) rounds += memory[at.counts + k]!;
  for (let k = 0; k < colors; k++)
    experts[k] = (memory[at.counts + k]! + model.longRunPriors[k]!) / (rounds + parameters.longRunPrior);

  for (let j = 0; j < 3; j++) {
    const seen = memory[at.theory + 2 * j]!;
    const reached = memory[at.theory + 2 * j + 1]!;
    const survival = ((reached + model.theoryPriorReached) / (seen + parameters.theoryPrior)) * model.x0;
    writeTheory(experts, (1 + j) * colors, survival, model.multipliers);
  }

  const { recentPrior, markovPrior, hazardPrior } = parameters;
  let recent = 0;
  for (let k = 0; k < colors; k++) recent += memory[at.recent + k]!;
  for (let k = 0; k < colors; k++)
    experts[4 * colors + k] = (memory[at.recent + k]! + recentPrior * experts[k]!) / (recent + recentPrior);

  for (let j = 0; j < colors; j++) {
    const row = at.transitions + j * colors;
    let seen = 0;
    for (let k = 0; k < colors; k++) seen += memory[row + k]!;
    for (let k = 0; k < colors; k++)
      transitions[j * colors + k] = (memory[row + k]! + markovPrior * experts[k]!) / (seen + markovPrior);
  }
  const previous = memory[at.previous]!;
  for (let k = 0; k < colors; k++)
    experts[MARKOV * colors + k] = previous < 0 ? experts[k]! : transitions[previous * colors + k]!;

  for (let b = 0; b < hazards.length; b++)
    hazards[b] = (memory[at.hits + b]! + hazardPrior * experts[top]!) / (memory[at.trials + b]! + hazardPrior);
  const gap = memory[at.gap]!;
  if (gap < 0) {
    for (let k = 0; k < colors; k++) experts[HAZARD * colors + k] = experts[k]!;
  } else {
    const hazard = hazards[gapBin(model, gap)]!;
    let others = 0;
    for (let k = 0; k < top; k++) others += experts[k]!;
    for (let k = 0; k < top; k++) experts[HAZARD * colors + k] = ((1 - hazard) * experts[k]!) / others;
    experts[HAZARD * colors + top] = hazard;
  }

  for (let k = 0; k < colors; k++) {
    let p = 0;
    for (let i = 0; i < EXPERT_COUNT; i++) p += memory[at.weights + i]! * experts[i * colors + k]!;
    mixture[k] = p;
  }
  state.current = true;
}
