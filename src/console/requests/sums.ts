import type { CallKind } from "../../usage/call-minute-store.ts";

/** The number of calls under one name, and the time of the last one. */
export interface CallSum {
  name: string;
  n: number;
  lastAt: string;
}

/** Sums calls by name, the most frequent first. */
export function sumKinds(kinds: readonly CallKind[], nameOf: (kind: CallKind) => string): CallSum[] {
  return [...Map.groupBy(kinds, nameOf)]
    .map(([name, own]) => ({
      name,
      n: own.reduce((sum, { n }) => sum + n, 0),
      lastAt: own.reduce((last, { lastAt }) => (lastAt > last ? lastAt : last), ""),
    }))
    .toSorted((a, b) => b.n - a.n || a.name.localeCompare(b.name));
}

/**
 * Values summed into points of equal length up to now, oldest first.
 *
 * @example
 * buckets([{ atMs: 90_000, value: 2 }, { atMs: 110_000, value: 3 }], { nowMs: 120_000, minutes: 2, points: 2 }); // => [0, 5]
 */
export function buckets(
  values: readonly { atMs: number; value: number }[],
  { nowMs, minutes, points }: { nowMs: number; minutes: number; points: number },
): number[] {
  const sums = Array.from({ length: points }, () => 0);
  const stepMs = (minutes * 60_000) / points;
  for (const { atMs, value } of values) {
    const place = points - 1 - Math.max(0, Math.floor((nowMs - atMs) / stepMs));
    if (place >= 0) sums[place] = (sums[place] ?? 0) + value;
  }
  return sums;
}
