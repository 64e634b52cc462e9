/**
 * The calibration e-value: how much a bettor against the stated probabilities would have won.
 *
 * The stake is split over the six bets of `BETS_IN_TWENTIETHS`; each bets λ on every hit. If each p is true given all
 * previous rounds, the product Π(1 + λ(y − p)) is a fair game, and so is the mean of the six: by Ville's inequality the
 * chance that it ever reaches 20 is at most 1 in 20, under any stopping rule (Shafer 2021; Ramdas et al. 2023). z-tests
 * of nine windows, many tables and five periods would raise false flags.
 *
 * Limit of fixed stakes: a bet gains on a bias of more than about λp(1 − p)/2 and loses on a smaller one, for any length
 * of the record. The smallest bet detects 1.25 points at p = 0.5 and half a point at p = 0.1; below that e falls towards
 * 0 with n, which only means "no bias of that size". A smaller bias shows in `z` and in the reliability bins.
 */
import { mean } from "simple-statistics";

/** Micro-nats in one nat. */
const MICRO = 1e6;

/** Forecasts are off target from this e-value on, multiplied by the number of rows of the chosen tables. */
const OFF_TARGET_E = 20;

/** `e` is capped at the greatest finite number, `lnE` is not. */
export type EValue = { e: number; lnE: number };

/**
 * The e-value of a row and its logarithm: the mean of exp(sum) over the bets; 1 for no forecasts.
 *
 * @param sumLnE what each bet gained, in micro-nats
 * @example
 * eValue([0n, 0n, 0n, 0n, 0n, 0n]).e; // => 1
 * eValue([2526096n, 1380904n, 586026n, -639578n, -1721484n, -3982556n]).e; // => 3.167479
 * eValue([0n, 0n, 0n, 0n, 0n, 900000000n]).lnE; // => 898.208241
 * eValue([0n, 0n, 0n, 0n, 0n, 900000000n]).e; // => Number.MAX_VALUE
 */
export function eValue(sumLnE: readonly bigint[]): EValue {
  const logs = sumLnE.map((sum) => Number(sum) / MICRO);
  const most = Math.max(...logs);
  const lnE = most + Math.log(mean(logs.map((log) => Math.exp(log - most))));
  return { e: Math.min(Math.exp(lnE), Number.MAX_VALUE), lnE };
}

/**
 * Whether the evidence rejects the stated probabilities of one of `shown` rows. The threshold grows with `shown`, since
 * among many correct rows one reaches 20 by chance.
 *
 * @example
 * isOffTarget(eValue([0n, 0n, 0n, 0n, 0n, 4740000n]), 1); // => false
 * isOffTarget(eValue([0n, 0n, 0n, 0n, 0n, 4750000n]), 1); // => true
 */
export function isOffTarget({ lnE }: EValue, shown: number): boolean {
  return lnE >= Math.log(OFF_TARGET_E * shown);
}
