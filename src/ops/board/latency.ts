/** Upper bounds of the latency histogram in the table `polls`, in milliseconds; its last part counts slower responses. */
const BOUNDS_MS = [10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000];

/** A quantile of a histogram: the bound that it is within; `isBeyond` where it is above the largest. */
export interface LatencyBound {
  ms: number;
  isBeyond: boolean;
}

/**
 * The bound within which this share of all responses arrived; null if there were none.
 *
 * @example
 * latencyQuantile([0, 0, 90, 10, 0, 0, 0, 0, 0, 0], 0.5); // => { ms: 50, isBeyond: false }
 * latencyQuantile([0, 0, 90, 10, 0, 0, 0, 0, 0, 0], 0.95); // => { ms: 100, isBeyond: false }
 * latencyQuantile([0, 0, 0, 0, 0, 0, 0, 0, 0, 3], 0.5); // => { ms: 5000, isBeyond: true }
 * latencyQuantile([0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0.5); // => null
 */
export function latencyQuantile(histogram: readonly number[], share: number): LatencyBound | null {
  const total = histogram.reduce((sum, n) => sum + n, 0);
  if (total === 0) return null;
  let seen = 0;
  const at = histogram.findIndex((n) => (seen += n) >= total * share);
  const isBeyond = at >= BOUNDS_MS.length;
  return { ms: BOUNDS_MS[Math.min(at, BOUNDS_MS.length - 1)] ?? 0, isBeyond };
}

/** A bound in words: `≤ 50 ms`, `> 5 s`. */
export function latencyText(bound: LatencyBound | null): string {
  if (bound === null) return "";
  const text = bound.ms >= 1_000 ? `${bound.ms / 1_000} s` : `${bound.ms} ms`;
  return `${bound.isBeyond ? ">" : "≤"} ${text}`;
}
