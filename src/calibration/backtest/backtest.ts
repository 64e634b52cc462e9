/**
 * A replay: runs rounds through a model as the live path would, in the order in which they were stored.
 *
 * The color of each round is forecast and scored, then the round is learned: the state changes exactly as the live one.
 * Windows follow one another as live ones do: each is scored at its nominal end and the next is issued there; missing
 * rounds make every open one void, and the next are issued after the following round. Every round is forecast, even the
 * first and those after a gap, so the result is the fit of the model to these rounds. It never enters the accuracy.
 *
 * The model fixes the length of every indexed array, hence the `!`.
 */
import { WINDOW_TARGETS } from "../../forecasts/model/features.ts";
import { emptyState, forgetContext, learn, probabilities, type State } from "../../forecasts/model/k7.ts";
import type { Model } from "../../forecasts/model/model.ts";
import { pitMass, waitCdf } from "../../forecasts/accuracy/figures/pit.ts";
import { nextColorPpm } from "../../forecasts/model/ppm.ts";
import type { Sums } from "../../forecasts/accuracy/figures/sums.ts";
import {
  createTally,
  sumsOfTally,
  tallyForecast,
  tallyGap,
  tallyNextColor,
  tallyWait,
  tallyWindow,
  type Tally,
} from "./tally.ts";
import { windowBaselinePpm, windowsOf } from "../../forecasts/model/windows.ts";

/** A round in one byte: the index of its color, and these two flags. */
export const REACHED_X0 = 8;
export const AFTER_GAP = 16;
const COLOR = 7;

/** An open window. */
export interface OpenWindow {
  rounds: number;
  /** Remaining rounds. */
  left: number;
  pPpm: number;
  basePpm: number;
  hit: boolean;
}

/** The wait for the top color. */
export interface Wait {
  /** The state at its last occurrence; its memory is overwritten at the next one. */
  readonly state: State;
  /** Rounds since then; null if rounds are missing or it has not occurred. */
  rounds: number | null;
}

/** A replay in progress. */
export interface Backtest {
  readonly model: Model;
  readonly state: State;
  /** `next_color`, then the windows by color and target. */
  readonly features: readonly string[];
  /** Per feature, the sums since the start or since it was resumed. */
  readonly tallies: readonly Tally[];
  /** By color and target; null if none is open. */
  readonly windows: (OpenWindow | null)[];
  readonly wait: Wait;
  /** The long-run shares of the state, see `baseline`; a view that stays valid. */
  readonly longRun: Float64Array;
}

/** Called for each forecast when it is made and scored; windows are numbered as in `features`. */
export interface Listener {
  /** Called before the round is learned. */
  nextColor(pPpm: readonly number[], basePpm: readonly number[], outcome: number): void;
  /** Called after the round is learned. */
  windowIssued(feature: number, rounds: number, pPpm: number, basePpm: number): void;
  windowEnded(feature: number, outcome: boolean | "void_gap"): void;
}

const TARGETS = WINDOW_TARGETS.length;

/** A replay before its first round. */
export function startBacktest(model: Model, colors: readonly string[], state: State = emptyState(model)): Backtest {
  const windows = colors.flatMap((color) => WINDOW_TARGETS.map((target) => `window:${color}:${target}`));
  return {
    model,
    state,
    features: ["next_color", ...windows],
    tallies: [createTally(model.colors), ...windows.map(() => createTally(1))],
    windows: windows.map(() => null),
    wait: { state: emptyState(model), rounds: null },
    longRun: state.experts.subarray(0, model.colors),
  };
}

/**
 * Replays rounds, oldest first.
 *
 * @param rounds one byte each, see `REACHED_X0` and `AFTER_GAP`
 * @throws RangeError on a color that the model does not have
 */
export function advance(backtest: Backtest, rounds: Uint8Array, listener?: Listener): void {
  for (let i = 0; i < rounds.length; i++) takeRound(backtest, rounds[i]!, listener);
}

/** The sums of each feature since the start, or since the replay was resumed. */
export function backtestSums({ features, tallies }: Backtest): Map<string, Sums> {
  return new Map(features.map((feature, index) => [feature, sumsOfTally(tallies[index]!)]));
}

function takeRound(backtest: Backtest, round: number, listener: Listener | undefined): void {
  const { model, state, tallies, longRun } = backtest;
  const color = round & COLOR;
  if ((round & AFTER_GAP) !== 0) {
    forgetContext(model, state);
    voidWindows(backtest, listener);
    backtest.wait.rounds = null;
  }
  const pPpm = nextColorPpm(probabilities(model, state));
  const basePpm = nextColorPpm(longRun);
  tallyForecast(tallies[0]!);
  tallyNextColor(tallies[0]!, pPpm, basePpm, color);
  listener?.nextColor(pPpm, basePpm, color);
  learn(model, state, color, (round & REACHED_X0) !== 0);
  followWait(backtest, color);
  for (let k = 0; k < model.colors; k++) followWindows(backtest, k, k === color, listener);
}

function voidWindows({ windows, tallies }: Backtest, listener: Listener | undefined): void {
  for (let i = 0; i < windows.length; i++) {
    if (windows[i] === null) continue;
    windows[i] = null;
    tallyGap(tallies[1 + i]!);
    listener?.windowEnded(1 + i, "void_gap");
  }
}

/** Scores the windows of one color that end, and issues the missing ones. */
function followWindows(backtest: Backtest, k: number, occurred: boolean, listener: Listener | undefined): void {
  const { model, state, windows, tallies } = backtest;
  let missing = 0;
  for (let i = k * TARGETS; i < (k + 1) * TARGETS; i++) {
    const window = windows[i]!;
    if (window !== null) {
      if (occurred) window.hit = true;
      window.left -= 1;
      if (window.left > 0) continue;
      tallyWindow(tallies[1 + i]!, window.pPpm, window.basePpm, window.hit);
      listener?.windowEnded(1 + i, window.hit);
      windows[i] = null;
    }
    missing = i - k * TARGETS + 1;
  }
  if (missing === 0) return;
  const found = windowsOf(model, state, k, missing);
  for (let target = 0; target < missing; target++) {
    const i = k * TARGETS + target;
    const stated = found[target]!;
    if (windows[i] !== null || stated === null) continue;
    const { rounds, pPpm } = stated;
    const basePpm = windowBaselinePpm(model, state, k, rounds);
    windows[i] = { rounds, left: rounds, pPpm, basePpm, hit: false };
    tallyForecast(tallies[1 + i]!);
    listener?.windowIssued(1 + i, rounds, pPpm, basePpm);
  }
}

/** A wait runs from one occurrence of the top color to the next; with missing rounds its length is unknown. */
function followWait(backtest: Backtest, color: number): void {
  const { model, state, tallies, wait } = backtest;
  if (wait.rounds !== null) wait.rounds += 1;
  if (color !== model.colors - 1) return;
  if (wait.rounds !== null) tallyWait(tallies[0]!, pitMass(waitCdf(model, wait.state, wait.rounds)));
  wait.state.memory.set(state.memory);
  wait.state.current = false;
  wait.rounds = 0;
}
