import type { PublishedReadingJson } from "../forecasts/readings/reading-state.ts";

/** Live data is for callers: public pages withhold what is newer. */
export const SECONDS_WITHHELD = 60;

/** Whether public pages may show a reading at a time, in milliseconds since 1970. */
export function isPastDelay({ made_at }: PublishedReadingJson, nowMs: number): boolean {
  return Date.parse(made_at) <= nowMs - SECONDS_WITHHELD * 1_000;
}

/**
 * Returns the readings to hold for public pages, oldest first, at most three, when `next` follows `last`. Of each minute
 * the first is held, so that all processes show the same one, and any that was the newest for as long as the delay.
 */
export function holdReading(
  held: readonly PublishedReadingJson[],
  last: PublishedReadingJson | null,
  next: PublishedReadingJson,
): readonly PublishedReadingJson[] {
  if (last?.made_at === next.made_at) return held;
  const nextMs = Date.parse(next.made_at);
  const all = [...held];
  if (last !== null && last !== all.at(-1) && isPastDelay(last, nextMs)) all.push(last);
  if (minuteOf(all.at(-1)) !== minuteOf(next)) all.push(next);
  return all.slice(
    Math.max(
      0,
      all.findLastIndex((one) => isPastDelay(one, nextMs)),
    ),
  );
}

function minuteOf(reading: PublishedReadingJson | undefined): string | undefined {
  return reading?.made_at.slice(0, "2026-11-21T12:00".length);
}
