import type { Fact } from "./reading-facts.ts";

/** What is published of a reading. */
export type PublishedReadingJson = { seq: string; rounds: number; made_at: string; facts: Fact[] };

/** Why nothing is said of a table now; `speaking` where something is. */
export type ReadingState = "speaking" | "paused" | "silent" | "nothing_yet";

/**
 * Whether a table's reading may be shown. Of a table that is silent nothing is said, nor where the newest reading is
 * as old as that: both would pass for news. Times in milliseconds of the database clock.
 */
export function readingState(
  {
    paused,
    reading,
    lastPolledMs,
  }: { paused: boolean; reading: PublishedReadingJson | null; lastPolledMs: number | null },
  nowMs: number,
  liveWindowMs: number,
): ReadingState {
  if (paused) return "paused";
  if (reading === null) return "nothing_yet";
  const isOld = (ms: number) => nowMs - ms >= liveWindowMs;
  return lastPolledMs === null || isOld(lastPolledMs) || isOld(Date.parse(reading.made_at)) ? "silent" : "speaking";
}
