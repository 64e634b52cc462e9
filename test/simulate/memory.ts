import { median } from "simple-statistics";

/** Resident memory of a process: the median of the second tenth of the time, after its warm-up, and of the last tenth. */
export interface Growth {
  name: string;
  beforeMb: number;
  afterMb: number;
}

/** A measurement of a process; `part` is the share of the time that had passed, from 0 to 1. */
export interface Sample {
  name: string;
  part: number;
  bytes: number;
}

/** A process whose memory grows by more than this factor after its warm-up leaks. */
const MAX_GROWTH = 1.3;
/** The share of the time in which caches fill and code is compiled. */
const WARM = 0.1;
const PART = 0.1;

/**
 * The memory growth of each process, from medians, since garbage collection makes single samples vary.
 *
 * @example
 * growthOf([
 *   { name: "api-0", part: 0.15, bytes: 200e6 },
 *   { name: "api-0", part: 0.95, bytes: 210e6 },
 * ]); // => [{ name: "api-0", beforeMb: 200, afterMb: 210 }]
 */
export function growthOf(samples: readonly Sample[]): Growth[] {
  return [...Map.groupBy(samples, ({ name }) => name)].flatMap(([name, own]) => {
    const between = (from: number, to: number) =>
      own.filter(({ part }) => part >= from && part < to).map(({ bytes }) => bytes);
    const [before, after] = [between(WARM, WARM + PART), between(1 - PART, Number.POSITIVE_INFINITY)];
    if (before.length === 0 || after.length === 0) return [];
    return [{ name, beforeMb: Math.round(median(before) / 1e6), afterMb: Math.round(median(after) / 1e6) }];
  });
}

/** Whether memory that is in use from `atMs` on, for `heldMs`, is measured in a time of `lastsMs`. */
export function isMeasured(atMs: number, heldMs: number, lastsMs: number): boolean {
  const touches = (from: number, to: number) => atMs < to * lastsMs && atMs + heldMs > from * lastsMs;
  return touches(WARM, WARM + PART) || touches(1 - PART, 1);
}

/** The first process that leaks; undefined if none does. */
export function findLeak(growths: readonly Growth[]): Growth | undefined {
  return growths.find(({ beforeMb, afterMb }) => afterMb > beforeMb * MAX_GROWTH);
}
