import type { RecordedRound } from "./rounds-file.ts";

/** When each round of a replay is first published, and which time it is published with. */
export interface Schedule {
  /** How many rounds, counted from the first of the file, have been published by then. */
  countPublished(nowMs: number): number;
  /** The first whole millisecond of wall time at which the round at this place is published. */
  publishedAtMs(place: number): number;
  /** The time that is published with it, as epoch milliseconds of wall time. */
  timeOf(place: number): number;
}

/**
 * Plays rounds at a speed: the round at `from` is published at `startMs`, those before it have been, and each later one as
 * long after it as by the recorded clock, divided by `speed`; where the file has no clock, `usualMs` after the one
 * before. Rounds are published in the order of the file: one whose recorded clock steps back is published immediately, with the
 * recorded time.
 */
export function scheduleOf(
  rounds: readonly RecordedRound[],
  { startMs, from, speed, usualMs }: { startMs: number; from: number; speed: number; usualMs: number },
): Schedule {
  const zeroMs = rounds[from]?.occurredMs ?? from * usualMs;
  const clock = Float64Array.from(rounds, ({ occurredMs }, place) => (occurredMs ?? place * usualMs) - zeroMs);
  let latest = -Infinity;
  const publishedAt = clock.map((ms, place) => {
    if (place > from) latest = Math.max(latest, ms, 0);
    else latest = Math.min(Math.max(latest, ms), 0);
    return latest;
  });
  const wallMs = (ms: number): number => startMs + Math.ceil(ms / speed);
  return {
    countPublished: (nowMs) =>
      Math.max(
        placesUpTo(publishedAt, (ms) => wallMs(ms) <= nowMs),
        from + 1,
      ),
    publishedAtMs: (place) => wallMs(placeIn(publishedAt, place)),
    timeOf: (place) => wallMs(placeIn(clock, place)),
  };
}

/** How many values, which never fall, pass the test before the first that does not. */
function placesUpTo(values: Float64Array, passes: (value: number) => boolean): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes(placeIn(values, middle))) low = middle + 1;
    else high = middle;
  }
  return low;
}

function placeIn(values: Float64Array, place: number): number {
  const value = values[place];
  if (value === undefined) throw new RangeError(`expected a place below ${values.length}, got ${place}`);
  return value;
}
