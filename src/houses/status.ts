const HOUR_MS = 3_600_000;

/** All statuses a house or a table can have, best first. */
export const STATUSES = ["live", "stale", "offline", "paused"] as const;

/** The health of a house, or of a table by its house, as every surface shows it. */
export type Status = (typeof STATUSES)[number];

/**
 * Computes the status of a house, or of a table from its house: live while the newest polled round of any of the house's
 * tables is younger than the window; stale up to an hour; offline beyond it, without any round, and if it is not polled;
 * paused while an operator has paused it. Imported, fetched and computed rounds never make a house live.
 */
export function statusOf(
  house: {
    /** Age in milliseconds, by the database clock, of the newest round from a poll; null if there is none. */
    newestPolledAgeMs: number | null;
    paused: boolean;
    /** False if the house, or the table, is not polled. */
    enabled: boolean;
  },
  liveWindowMs: number,
): Status {
  if (house.paused) return "paused";
  if (!house.enabled || house.newestPolledAgeMs === null) return "offline";
  if (house.newestPolledAgeMs < liveWindowMs) return "live";
  return house.newestPolledAgeMs < HOUR_MS ? "stale" : "offline";
}
