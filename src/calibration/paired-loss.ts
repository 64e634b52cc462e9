/**
 * The difference of the log losses of two models on the same rounds, with its interval.
 *
 * Paired, since the rounds are the same: their difficulty cancels, so the interval is far narrower than those of the two
 * losses. Sums are integers.
 */
import { forgetContext, learn, probabilities, type State } from "../forecasts/model/k7.ts";
import type { Model } from "../forecasts/model/model.ts";
import { nextColorPpm } from "../forecasts/model/ppm.ts";
import { AFTER_GAP, REACHED_X0 } from "./backtest/backtest.ts";
import { Z_95 } from "../forecasts/accuracy/figures/intervals.ts";
import { microNats } from "../forecasts/score/scoring.ts";

/** Sums of losses in micro-nats and of their differences, first minus second. */
export type PairedSums = { n: bigint; first: bigint; second: bigint; d: bigint; d2: bigint };

/** One of the two: a model, its state, and the rounds in its bands, one byte each. */
export type Side = { model: Model; state: State; rounds: Uint8Array };

const COLOR = 7;
const MICRO = 1e6;

/** Learns rounds without scoring them. */
export function learnPacked({ model, state, rounds }: Side): void {
  for (const round of rounds) {
    if ((round & AFTER_GAP) !== 0) forgetContext(model, state);
    learn(model, state, round & COLOR, (round & REACHED_X0) !== 0);
  }
}

/**
 * Runs the same rounds through both and returns the sums.
 *
 * @throws Error if the two have different rounds, or different colors for a round
 */
export function pairRounds(first: Side, second: Side): PairedSums {
  const sums = { n: BigInt(first.rounds.length), first: 0n, second: 0n, d: 0n, d2: 0n };
  if (first.rounds.length !== second.rounds.length)
    throw new Error(`expected ${first.rounds.length} rounds for both models, found ${second.rounds.length}`);
  for (let i = 0; i < first.rounds.length; i++) {
    const [color, other] = [first.rounds[i]! & COLOR, second.rounds[i]! & COLOR];
    if (color !== other) throw new Error(`expected one color of a round for both models, found ${color} and ${other}`);
    const a = lossOf(first, i);
    const b = lossOf(second, i);
    sums.first += BigInt(a);
    sums.second += BigInt(b);
    sums.d += BigInt(a - b);
    sums.d2 += BigInt(a - b) * BigInt(a - b);
  }
  return sums;
}

/** The sum of two. */
export function addPairs(a: PairedSums, b: PairedSums): PairedSums {
  return { n: a.n + b.n, first: a.first + b.first, second: a.second + b.second, d: a.d + b.d, d2: a.d2 + b.d2 };
}

/**
 * Mean losses and their difference (first minus second, below 0 if the first is better) in nats per round, with its
 * normal 95 % interval: mean ± 1.96·s/√n, where s² is the sample variance. Null without rounds; no interval for one round.
 *
 * @example
 * const sums = { n: 4n, first: 3800000n, second: 3790000n, d: 10000n, d2: 1550000000n };
 * pairedFigures(sums).difference; // => 0.0025
 * pairedFigures(sums).interval_95; // => [-0.019595, 0.024595]
 */
export function pairedFigures({ n, first, second, d, d2 }: PairedSums) {
  if (n === 0n) return null;
  const rounds = Number(n);
  const difference = Number(d) / rounds / MICRO;
  const half = n < 2n ? null : (Z_95 * Math.sqrt(Number(n * d2 - d * d) / (rounds - 1))) / rounds / MICRO;
  const interval: [low: number, high: number] | null = half === null ? null : [difference - half, difference + half];
  return {
    rounds,
    first_log_loss: Number(first) / rounds / MICRO,
    second_log_loss: Number(second) / rounds / MICRO,
    difference,
    interval_95: interval,
  };
}

function lossOf({ model, state, rounds }: Side, i: number): number {
  const round = rounds[i]!;
  if ((round & AFTER_GAP) !== 0) forgetContext(model, state);
  const color = round & COLOR;
  const pPpm = nextColorPpm(probabilities(model, state))[color];
  if (pPpm === undefined)
    throw new Error(`expected a color from 0 to ${model.colors - 1}, got ${color}; the round is damaged`);
  const loss = microNats(pPpm);
  learn(model, state, color, (round & REACHED_X0) !== 0);
  return loss;
}
