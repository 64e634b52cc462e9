/**
 * A replay: rounds taken through a model as the live path would have, in the order in which they were taken in.
 *
 * Before each round its color is forecast and judged, then the round is learned: the state moves exactly as the live
 * one. Windows follow one another as live ones do: judged at their nominal end, the next issued right there; missing
 * rounds make every open one void, and the next are issued after the round that came then. Each round is forecast,
 * whatever was issued at the time, also the first and those after a gap: this says how well a model fits these rounds.
 * It is no accuracy and never enters it.
 *
 * Indexes run over arrays whose length the model fixes, hence the `!`.
 */
import { WINDOW_TARGETS } from "../forecasts/model/features.ts";
import { emptyState, forgetContext, learn, probabilities, type State } from "../forecasts/model/k7.ts";
import type { Model } from "../forecasts/model/model.ts";
import { pitMass, waitCdf } from "../forecasts/accuracy/figures/pit.ts";
import { nextColorPpm } from "../forecasts/model/ppm.ts";
import type { Sums } from "../forecasts/accuracy/figures/sums.ts";
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
import { windowBaselinePpm, windowsOf } from "../forecasts/model/windows.ts";

/** A round in one byte: the index of its color, and these two flags. */
export const REACHED_X0 = 8;
export const AFTER_GAP = 16;
const COLOR = 7;

/** A window on its way. */
export interface OpenWindow {
  rounds: number;
  /** Rounds still to come. */
  left: number;
  pPpm: number;
  basePpm: number;
  hit: boolean;
}

/** The wait for the top color. */
export interface Wait {
  /** The state in which it last came; its memory is written over when it comes again. */
  readonly state: State;
  /** Rounds since then; null if rounds are missing, or it has not come yet. */
  rounds: number | null;
}

/** If a replay stands. */
export interface Backtest {
  readonly model: Model;
  readonly state: State;
  /** `next_color`, then the windows by color and target. */
  readonly features: readonly string[];
  /** Of each feature, what was added since the start or since it was taken up again. */
  readonly tallies: readonly Tally[];
  /** By color and target; null if none is open. */
  readonly windows: (OpenWindow | null)[];
  readonly wait: Wait;
  /** The long-run shares of the state, as `baseline` gives them; a view that holds. */
  readonly longRun: Float64Array;
}

/** Told of each forecast as it is made and judged; windows are numbered as in `features`. */
export interface Listener {
  /** Before the round, of the round. */
  nextColor(pPpm: readonly number[], basePpm: readonly number[], outcome: number): void;
  /** After the round. */
  windowIssued(feature: number, rounds: number, pPpm: number, basePpm: number): void;
  windowEnded(feature: number, outcome: boolean | "void_gap"): void;
}

const TARGETS = WINDOW_TARGETS.length;

/** A replay that has seen nothing. */
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
 * Takes rounds in, oldest first.
 *
 * @param rounds one byte each, see `REACHED_X0` and `AFTER_GAP`
 * @throws RangeError on a color that the model does not have
 */
export function advance(backtest: Backtest, rounds: Uint8Array, listener?: Listener): void {
  for (let i = 0; i < rounds.length; i++) takeRound(backtest, rounds[i]!, listener);
}

/** The sums of each feature since the start, or since it was taken up again. */
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

/** The windows of one color: those that end are judged, and those that are missing are issued. */
function followWindows(backtest: Backtest, k: number, came: boolean, listener: Listener | undefined): void {
  const { model, state, windows, tallies } = backtest;
  let missing = 0;
  for (let i = k * TARGETS; i < (k + 1) * TARGETS; i++) {
    const window = windows[i]!;
    if (window !== null) {
      if (came) window.hit = true;
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

/** A wait begins when the top color comes and ends when it comes again; one with missing rounds in it has no length. */
function followWait(backtest: Backtest, color: number): void {
  const { model, state, tallies, wait } = backtest;
  if (wait.rounds !== null) wait.rounds += 1;
  if (color !== model.colors - 1) return;
  if (wait.rounds !== null) tallyWait(tallies[0]!, pitMass(waitCdf(model, wait.state, wait.rounds)));
  wait.state.memory.set(state.memory);
  wait.state.current = false;
  wait.rounds = 0;
}
