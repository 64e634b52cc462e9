/**
 * PIT of waiting times: each real wait for the top color, as a quantile of its stated distribution.
 *
 * If the stated distributions are right, the mass is even over the bins; a hump in the middle means that they were too
 * wide, high ends that they were too narrow. Waits are whole rounds, so the non-randomized form for counts is used: each
 * wait spreads over the whole step of its distribution function (Czado, Gneiting & Held 2009, Biometrics 65:1254). Read
 * it next to the reliability of windows: it is taken right after each top color, so it does not detect a "due"
 * forecaster, who is wrong only later in the wait.
 */
import type { State } from "../../model/k7.ts";
import type { Model } from "../../model/model.ts";
import { PPM } from "../../model/ppm.ts";
import { hitProbability } from "../../model/windows.ts";

/** Equal bins of the unit interval. */
export const PIT_BINS = 10;

const BIN_PPM = PPM / PIT_BINS;

/** Stated distribution of a wait of n rounds: probability of fewer than n, and of at most n, in ppm. */
export type WaitCdf = { belowPpm: number; atPpm: number };

/**
 * The distribution that a state stated for a wait that has ended since.
 *
 * Only + − × ÷ and one rounding, so the result is the same on every machine. It walks the wait twice: copy `state.memory`
 * when the top color occurs, and call this when it has occurred again.
 *
 * @param state right after a top color was learned; not changed
 * @param rounds how many rounds later the top color occurred again, from 1; leave out waits with missing rounds
 */
export function waitCdf(model: Model, state: State, rounds: number): WaitCdf {
  if (!Number.isSafeInteger(rounds) || rounds < 1)
    throw new RangeError(`expected a wait of 1 round or more, got ${rounds}; count from the round after the top color`);
  const top = model.colors - 1;
  const ppm = (n: number) => Math.floor(hitProbability(model, state, top, n) * PPM + 0.5);
  return { belowPpm: ppm(rounds - 1), atPpm: ppm(rounds) };
}

/**
 * The mass of one wait by bin, in ppm: integers that sum to exactly 1,000,000, so that rows can be added.
 *
 * The mass up to u is 0 if u ≤ F(n−1), 1 if u ≥ F(n), and (u − F(n−1)) / (F(n) − F(n−1)) between, rounded down; a bin
 * holds the difference of its two ends. A step of height 0, deep in the tail, lies in one bin.
 *
 * @throws RangeError unless 0 ≤ belowPpm ≤ atPpm ≤ 1,000,000, all integers
 * @example
 * pitMass({ belowPpm: 0, atPpm: 1000000 }); // => [100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000]
 * pitMass({ belowPpm: 99000, atPpm: 188199 }); // => [11210, 988790, 0, 0, 0, 0, 0, 0, 0, 0]
 * pitMass({ belowPpm: 999999, atPpm: 999999 }); // => [0, 0, 0, 0, 0, 0, 0, 0, 0, 1000000]
 */
export function pitMass({ belowPpm, atPpm }: WaitCdf): number[] {
  if (!Number.isInteger(belowPpm) || !Number.isInteger(atPpm) || belowPpm < 0 || atPpm < belowPpm || atPpm > PPM)
    throw new RangeError(
      `expected two rising probabilities from 0 to 1000000 ppm, got ${belowPpm} and ${atPpm}; the model state is damaged`,
    );
  let reached = 0;
  return Array.from({ length: PIT_BINS }, (_, bin) => {
    const before = reached;
    reached = bin === PIT_BINS - 1 ? PPM : massUpTo((bin + 1) * BIN_PPM, belowPpm, atPpm);
    return reached - before;
  });
}

/** The number of waits in a row, and the height of each bin relative to an even spread (1); null if there are none. */
export function pitHeights(pit: readonly bigint[]): { waits: number; heights: number[] } | null {
  const total = pit.reduce((sum, mass) => sum + mass, 0n);
  if (total === 0n) return null;
  return {
    waits: Number(total / BigInt(PPM)),
    heights: pit.map((mass) => (Number(mass) * PIT_BINS) / Number(total)),
  };
}

/** Products stay below 10¹², where a quotient of doubles cannot round up to the next integer. */
function massUpTo(u: number, below: number, at: number): number {
  if (u <= below) return 0;
  if (u >= at) return PPM;
  return Math.floor(((u - below) * PPM) / (at - below));
}
