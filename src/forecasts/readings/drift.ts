/**
 * Has a table changed? Two e-CUSUMs: s ← max(s, 1) · (probability by newer rounds) / (probability by the long run), for
 * the share of rounds at or above 1.10 (half-life 500 rounds) and for the colors (half-life 1,000), as an e-detector in
 * the sense of Shin, Ramdas and Rinaldo (2024). Alarm from 10,000 on.
 *
 * The long run is learned from the same rounds, so the false alarm rate is measured, not proven: no alarm in 2.73
 * million real bustabit rounds. s is capped at a million, so that the alarm ends soon after a table has returned to
 * normal.
 */
import { type Model } from "../model/model.ts";

/** Memory of the two detectors. */
export type Drift = {
  rounds: number;
  reached: number;
  /** Discounted rounds, and those at or above 1.10. */
  newerRounds: number;
  newerReached: number;
  reachEvidence: number;
  counts: number[];
  newerCounts: number[];
  colorEvidence: number;
};

/** Evidence from which a table counts as changed. */
export const ALARM_FROM = 1e4;
const MOST = 1e6;

/** 2^(−1/500) and 2^(−1/1000) as literals, since `Math.pow` may differ between machines. */
const REACH_DECAY = 0.9986146661010289;
const COLOR_DECAY = 0.9993070929904525;

/** Prior weights in rounds: of the long run in the newer rounds, and of the declared edge in the long run. */
const NEWER_PRIOR = 25;
const LONG_PRIOR = 50;

/** Before the first round. */
export function emptyDrift(colors: number): Drift {
  const zeros = () => Array.from({ length: colors }, () => 0);
  return {
    rounds: 0,
    reached: 0,
    newerRounds: 0,
    newerReached: 0,
    reachEvidence: 1,
    counts: zeros(),
    newerCounts: zeros(),
    colorEvidence: 1,
  };
}

/** Updates both detectors by a round, then learns it. */
export function watchDrift(
  drift: Drift,
  model: Model,
  { color, hundredths }: { color: number; hundredths: number },
): void {
  const isReached = hundredths >= model.x0Hundredths;
  const long = (drift.reached + model.theoryPriorReached) / (drift.rounds + LONG_PRIOR);
  const newer = (drift.newerReached + NEWER_PRIOR * long) / (drift.newerRounds + NEWER_PRIOR);
  drift.reachEvidence = next(drift.reachEvidence, isReached ? newer / long : (1 - newer) / (1 - long));

  const share = longShare(drift, model, color);
  let newerCount = 0;
  for (const count of drift.newerCounts) newerCount += count;
  const newerShare = ((drift.newerCounts[color] ?? 0) + NEWER_PRIOR * share) / (newerCount + NEWER_PRIOR);
  drift.colorEvidence = next(drift.colorEvidence, newerShare / share);

  drift.rounds += 1;
  drift.reached += isReached ? 1 : 0;
  drift.newerRounds = drift.newerRounds * REACH_DECAY + 1;
  drift.newerReached = drift.newerReached * REACH_DECAY + (isReached ? 1 : 0);
  for (let k = 0; k < drift.newerCounts.length; k++) {
    drift.newerCounts[k] = (drift.newerCounts[k] ?? 0) * COLOR_DECAY + (k === color ? 1 : 0);
  }
  drift.counts[color] = (drift.counts[color] ?? 0) + 1;
}

/** The long-run share of a color with the theory as prior, as in expert LR of K7. */
export function longShare({ counts, rounds }: Pick<Drift, "counts" | "rounds">, model: Model, color: number): number {
  return ((counts[color] ?? 0) + (model.longRunPriors[color] ?? 0)) / (rounds + model.parameters.longRunPrior);
}

function next(evidence: number, ratio: number): number {
  return Math.min(MOST, Math.max(evidence, 1) * ratio);
}
