const HOUR_MS = 3_600_000;

/** All statuses a house or a table can have, best first. */
export const STATUSES = ["live", "stale", "offline", "paused"] as const;

/** How a house, or a table by its house, is doing, as every surface shows it. */
export type Status = (typeof STATUSES)[number];

/**
 * The status of a house, or of a table judged by its house: live while the newest polled round of any of the house's
 * tables is younger than the window, stale up to an hour, offline beyond it or without any, and where it is not polled;
 * paused while an operator says so. Imported, fetched and computed rounds never make a house live.
 */
export function statusOf(
  house: {
    /** Age in milliseconds, by the database clock, of the newest round that a poll brought; null where there is none. */
    newestPolledAgeMs: number | null;
    paused: boolean;
    /** False where the house, or the table, is not polled. */
    enabled: boolean;
  },
  liveWindowMs: number,
): Status {
  if (house.paused) return "paused";
  if (!house.enabled || house.newestPolledAgeMs === null) return "offline";
  if (house.newestPolledAgeMs < liveWindowMs) return "live";
  return house.newestPolledAgeMs < HOUR_MS ? "stale" : "offline";
}
