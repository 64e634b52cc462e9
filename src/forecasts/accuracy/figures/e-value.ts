/**
 * The calibration e-value: how much a bettor against the stated probabilities would have won.
 *
 * He splits his stake over the six bets of `BETS_IN_TWENTIETHS` and bets λ on every hit. Where each p is true given
 * all that came before, the product Π(1 + λ(y − p)) is a fair game and so is the mean of the six: by Ville's inequality
 * it ever reaches 20 with a chance of at most 1 in 20, however often one looks and whenever one stops (Shafer 2021;
 * Ramdas et al. 2023). Nine windows, many tables and five periods of z-tests would be sure to raise false flags.
 *
 * The price of fixed stakes: a bet gains on a fault of more than about λp(1 − p)/2 and loses on a smaller one, however
 * long the record. The smallest bet sees 1.25 points at p = 0.5 and half a point at p = 0.1; below that e falls towards
 * 0 with n, which says "no fault of that size" and no more. Smaller faults show in `z` and in the reliability bins.
 */
import { mean } from "simple-statistics";

/** Micro-nats in one nat. */
const MICRO = 1e6;

/** Forecasts are called off target from this e-value on, times the rows that are shown together. */
const OFF_TARGET_E = 20;

/** `e` is cut off at the greatest finite number, `lnE` is not. */
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
 * Whether the evidence says that the stated probabilities are wrong, of one of `shown` rows: among many, one that is right
 * reaches 20 by luck.
 *
 * @example
 * isOffTarget(eValue([0n, 0n, 0n, 0n, 0n, 4740000n]), 1); // => false
 * isOffTarget(eValue([0n, 0n, 0n, 0n, 0n, 4750000n]), 1); // => true
 */
export function isOffTarget({ lnE }: EValue, shown: number): boolean {
  return lnE >= Math.log(OFF_TARGET_E * shown);
}
