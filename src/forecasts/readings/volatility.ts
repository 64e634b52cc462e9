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
};

/** Number of rounds in "lately". */
export const LATELY = 100;
/** Thousandths of a nat in a bin, and the number of bins: up to 5.1 nats, an M of 164 on average. */
const BIN = 20;
const BINS = 256;

/** Before the first round. */
export function emptyVolatility(): Volatility {
  return { rounds: 0, sum: 0, newest: [], means: [], spreads: [] };
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
  volatility.rounds += 1;
  volatility.sum += milliNats(hundredths);
  newest.push(hundredths);
  if (newest.length > LATELY) newest.shift();
  if (newest.length < LATELY) return;
  const { mean, spread } = binsOf(newest);
  addTo(means, mean);
  addTo(spreads, spread);
}

/**
 * The newest mean and standard deviation of ln M in nats, and the share of the table's past values below each (ties count
 * half); null before 100 rounds.
 */
export function lately({ newest, means, spreads }: Volatility): {
  mean: number;
  spread: number;
  meanPercentile: number;
  spreadPercentile: number;
  values: number;
} | null {
  if (newest.length < LATELY) return null;
  const { sum, varianceTimes } = momentsOf(newest);
  const bins = binsOf(newest);
  return {
    mean: sum / LATELY / 1000,
    spread: Math.sqrt(varianceTimes) / LATELY / 1000,
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

/** Sum, and variance times the square of the number of rounds, of whole thousandths: exact integers. */
function momentsOf(newest: readonly number[]): { sum: number; varianceTimes: number } {
  let sum = 0;
  let squares = 0;
  for (const hundredths of newest) {
    const value = milliNats(hundredths);
    sum += value;
    squares += value * value;
  }
  return { sum, varianceTimes: LATELY * squares - sum * sum };
}

function binsOf(newest: readonly number[]): { mean: number; spread: number } {
  const { sum, varianceTimes } = momentsOf(newest);
  return {
    mean: Math.min(BINS - 1, Math.floor(sum / (LATELY * BIN))),
    spread: Math.min(BINS - 1, Math.floor(wholeRoot(varianceTimes) / (LATELY * BIN))),
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
