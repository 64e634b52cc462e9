import { median } from "simple-statistics";

/** Resident memory of one process: a median over the tenth after it has warmed up, and one over the last tenth. */
export interface Growth {
  name: string;
  beforeMb: number;
  afterMb: number;
}

/** What a process had when it was looked at, in bytes, and how much of the time had passed by then: 0 to 1. */
export interface Sample {
  name: string;
  part: number;
  bytes: number;
}

/** A process that has more by this factor than after it has warmed up leaks. */
const MOST_GROWTH = 1.3;
/** Caches and compiled code are filled by then. */
const WARM = 0.1;
const PART = 0.1;

/**
 * How each process grew. Medians, since single looks fall before or after a collection of garbage.
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

/** The first that grew more than memory that is flat does; undefined where none did. */
export function findLeak(growths: readonly Growth[]): Growth | undefined {
  return growths.find(({ beforeMb, afterMb }) => afterMb > beforeMb * MOST_GROWTH);
}
