/**
 * How volatile is a table? Mean and spread of ln M over the newest 100 rounds, and their ranks among all such values of
 * this table. Logarithms, because under P(M ≥ x) = c/x the multiplier itself has no mean.
 *
 * ln M is rounded to thousandths of a nat; the rest is integers. No multiplier up to 20,000 is so near to a rounding
 * boundary that `Math.log` of two machines could differ, so a replay gives the same memory on every machine.
 */

/** Memory: the newest multipliers, the sums of all, and histograms of past values. */
export type Volatility = {
  rounds: number;
  /** Thousandths of a nat, over all rounds. */
  sum: number;
  /** The newest 100 multipliers in hundredths, oldest first. */
  newest: number[];
  /** Histograms of the mean and the standard deviation in bins of 0.02 nats; the last bin has no upper end. */
  means: number[];
  spreads: number[];
  /** Sum, and sum of squares, of `newest` in thousandths of a nat; not saved, because they follow from it. */
  newestSum: number;
  newestSquares: number;
};

/** Number of rounds in "lately". */
export const LATELY = 100;
/** Thousandths of a nat in a bin, and the number of bins: up to 5.1 nats, an M of 164 on average. */
const BIN = 20;
const BINS = 256;

/** Before the first round. */
export function emptyVolatility(): Volatility {
  return withMoments({ rounds: 0, sum: 0, newest: [], means: [], spreads: [] });
}

/** A memory from its saved part. */
export function withMoments(saved: Omit<Volatility, "newestSum" | "newestSquares">): Volatility {
  const volatility = { ...saved, newestSum: 0, newestSquares: 0 };
  for (const hundredths of saved.newest) count(volatility, milliNats(hundredths), 1);
  return volatility;
}

/** The saved part of a memory. */
export function withoutMoments({ rounds, sum, newest, means, spreads }: Volatility) {
  return { rounds, sum, newest, means, spreads };
}

/**
 * ln of a multiplier in whole thousandths of a nat.
 *
 * @example
 * milliNats(100); // => 0
 * milliNats(200); // => 693
 * milliNats(1000); // => 2303
 */
export function milliNats(hundredths: number): number {
  return Math.floor(Math.log(hundredths / 100) * 1000 + 0.5);
}

/** Learns a round; from the hundredth on each adds one value to both histograms. */
export function watchVolatility(volatility: Volatility, hundredths: number): void {
  const { newest, means, spreads } = volatility;
  const value = milliNats(hundredths);
  volatility.rounds += 1;
  volatility.sum += value;
  newest.push(hundredths);
  count(volatility, value, 1);
  if (newest.length > LATELY) count(volatility, milliNats(newest.shift() ?? 0), -1);
  if (newest.length < LATELY) return;
  const { mean, spread } = binsOf(volatility);
  addTo(means, mean);
  addTo(spreads, spread);
}

/** Adds a value to the moments, or takes it away: two logarithms a round instead of a hundred. */
function count(volatility: Volatility, value: number, times: 1 | -1): void {
  volatility.newestSum += times * value;
  volatility.newestSquares += times * value * value;
}

/**
 * The newest mean and standard deviation of ln M in nats, and the share of the table's past values below each (ties count
 * half); null before 100 rounds.
 */
export function lately(volatility: Volatility): {
  mean: number;
  spread: number;
  meanPercentile: number;
  spreadPercentile: number;
  values: number;
} | null {
  const { newest, means, spreads } = volatility;
  if (newest.length < LATELY) return null;
  const bins = binsOf(volatility);
  return {
    mean: volatility.newestSum / LATELY / 1000,
    spread: Math.sqrt(varianceTimes(volatility)) / LATELY / 1000,
    meanPercentile: percentile(means, bins.mean),
    spreadPercentile: percentile(spreads, bins.spread),
    values: means.reduce((total, n) => total + n, 0),
  };
}

/**
 * The share of values in the bins below this one plus half of this bin.
 *
 * @example
 * percentile([1, 2, 1], 1); // => 0.5
 * percentile([1, 2, 1], 2); // => 0.875
 */
export function percentile(counts: readonly number[], bin: number): number {
  const all = counts.reduce((total, n) => total + n, 0);
  const below = counts.slice(0, bin).reduce((total, n) => total + n, 0);
  return (below + (counts[bin] ?? 0) / 2) / all;
}

/** The variance times the square of the number of rounds: an exact integer. */
function varianceTimes({ newestSum, newestSquares }: Volatility): number {
  return LATELY * newestSquares - newestSum * newestSum;
}

function binsOf(volatility: Volatility): { mean: number; spread: number } {
  return {
    mean: Math.min(BINS - 1, Math.floor(volatility.newestSum / (LATELY * BIN))),
    spread: Math.min(BINS - 1, Math.floor(wholeRoot(varianceTimes(volatility)) / (LATELY * BIN))),
  };
}

/** ⌊√n⌋ exactly, independent of the last bit of `Math.sqrt`. */
function wholeRoot(n: number): number {
  let root = Math.floor(Math.sqrt(n));
  while (root * root > n) root -= 1;
  while ((root + 1) * (root + 1) <= n) root += 1;
  return root;
}

function addTo(counts: number[], bin: number): void {
  while (counts.length <= bin) counts.push(0);
  counts[bin] = (counts[bin] ?? 0) + 1;
}
