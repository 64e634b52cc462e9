import type { Fact } from "./reading-facts.ts";

/** A published reading. */
export type PublishedReadingJson = { seq: string; rounds: number; made_at: string; facts: Fact[] };

/** Whether a table has a current reading (`speaking`), or the reason why not. */
export type ReadingState = "speaking" | "paused" | "silent" | "nothing_yet";

/**
 * Whether a table's reading may be shown. It may not if the table is silent or the newest reading is equally old: both
 * would pass for news. Times in milliseconds of the database clock.
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
