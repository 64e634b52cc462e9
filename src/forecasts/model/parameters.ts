/**
 * All tuned values of K7. They are frozen under the name: a set with another value has another name and another accuracy
 * record.
 */
export type Parameters = {
  /** The unique name of the set; names of its models begin with it. */
  readonly name: string;
  /** Rounds the theory counts for in the long-run shares. */
  readonly longRunPrior: number;
  /** Rounds the declared edge counts for in the theory experts. */
  readonly theoryPrior: number;
  /** Rounds the long-run shares count for in the discounted color counts, the Markov rows and the gap hazards. */
  readonly recentPrior: number;
  readonly markovPrior: number;
  readonly hazardPrior: number;
  /** Decay per round of the two discounted theory experts and of the discounted color counts: 2^(−1/half-life). */
  readonly theoryDecays: readonly [number, number];
  readonly recentDecay: number;
  /** Share of the weight that returns to the prior each round, so that no expert is ever lost. */
  readonly share: number;
  /** Prior weights of the experts in the order of `EXPERTS`; they sum to 1. */
  readonly priorWeights: readonly number[];
  /** The multiplier, in hundredths, whose survival pins the edge of a house. */
  readonly x0Hundredths: number;
  /** Edge assumed for a table that declares none. */
  readonly assumedEdge: number;
  /** Last gap of each hazard bin; one more bin is open above the last. */
  readonly gapBinEnds: readonly number[];
};

/** The experts of K7 in the order in which everything about them is stored and summed. */
export const EXPERTS = ["LR", "TH", "TH200", "TH2000", "D1000", "M1", "G"] as const;

/**
 * K7 as first published.
 *
 * The share is the best of nine between 0 and 1e-2 over 17 kinds of table (0 never recovers after a stuck feed, 1e-3 is
 * worse on every structured table). x0 = 1.10 instead of the sharper 1.01 because some houses have no instant crash. The
 * decays are literals (half-lives of 200, 2000 and 1000 rounds), since `Math.pow` may differ between machines.
 */
export const K7_1: Parameters = {
  name: "k7@1",
  longRunPrior: 20,
  theoryPrior: 50,
  recentPrior: 25,
  markovPrior: 100,
  hazardPrior: 100,
  theoryDecays: [0.9965402628278678, 0.9996534864594093],
  recentDecay: 0.9993070929904525,
  share: 1e-5,
  priorWeights: [3 / 11, 3 / 11, 1 / 11, 1 / 11, 1 / 11, 1 / 11, 1 / 11],
  x0Hundredths: 110,
  assumedEdge: 0.03,
  gapBinEnds: [0, 2, 4, 7, 11, 17, 27, 44],
};
