/**
 * PIT of waiting times: how long the top color really let wait, measured on the scale of how long it was said to.
 *
 * If the stated distributions are right the mass spreads evenly over the bins; a hump in the middle says that they
 * were too wide, full ends that they were too narrow. Waits are whole rounds, so the non-randomized form for counts:
 * each wait spreads over the whole step of its distribution function (Czado, Gneiting & Held 2009, Biometrics 65:1254).
 * Read it next to the reliability of windows: taken right after each top color, it gives even a "due" forecaster, who is
 * wrong only later in the wait, a clean bill.
 */
import type { State } from "../../model/k7.ts";
import type { Model } from "../../model/model.ts";
import { PPM } from "../../model/ppm.ts";
import { hitProbability } from "../../model/windows.ts";

/** Equal bins of the unit interval. */
export const PIT_BINS = 10;

const BIN_PPM = PPM / PIT_BINS;

/** What was said about a wait of n rounds: probability of fewer than n, and of at most n, in ppm. */
export type WaitCdf = { belowPpm: number; atPpm: number };

/**
 * What a state said about a wait that has ended since.
 *
 * Only + − × ÷ and one rounding, so the same everywhere. It walks the wait twice; keep a copy of `state.memory` from
 * when the top color came and ask once it has come again.
 *
 * @param state right after a top color, as `learn` left it; nothing is changed in it
 * @param rounds the round, counted from 1 for the next one, in which the top color came again; a wait that rounds are
 *   missing from has no such number and is left out
 */
export function waitCdf(model: Model, state: State, rounds: number): WaitCdf {
  if (!Number.isSafeInteger(rounds) || rounds < 1)
    throw new RangeError(`expected a wait of 1 round or more, got ${rounds}; count from the round after the top color`);
  const top = model.colors - 1;
  const ppm = (n: number) => Math.floor(hitProbability(model, state, top, n) * PPM + 0.5);
  return { belowPpm: ppm(rounds - 1), atPpm: ppm(rounds) };
}

/**
 * The mass of one wait by bin, in ppm: integers that sum to exactly 1,000,000, so that rows of them merge.
 *
 * Up to u the mass is 0 where u ≤ F(n−1), 1 where u ≥ F(n), and (u − F(n−1)) / (F(n) − F(n−1)) between, rounded down;
 * a bin holds what its upper end has more than its lower. A step of no height, deep in the tail, lies in one bin.
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

/** The waits in a row and the height of each bin against an even spread, 1 being what was promised; null for none. */
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
