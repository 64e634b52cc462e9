/** A slower measurement is too inexact, unless there is no better one. */
const GOOD_WITHIN_MS = 250;
/**
 * Clocks drift by fractions of a second a day: after this time an inexact measurement is better than an old exact one.
 */
const GOOD_FOR_MS = 3_600_000;

/** The time of the database, as far as this process knows it. */
export interface DatabaseClock {
  nowMs(): number;
  /**
   * Records that the database reported `ms` between two moments of `performance.now()`. The time counts for the middle
   * of the two; a slow response, as after a stall, is ignored.
   */
  heard(ms: number, askedAt: number, respondedAt: number): void;
}

/** Follows the clock of the database from its reported times; before the first, it is 1970. */
export function followClock(): DatabaseClock {
  let offsetMs = 0;
  let best: { tookMs: number; at: number } | null = null;
  return {
    nowMs: () => offsetMs + performance.now(),
    heard(ms, askedAt, respondedAt) {
      const tookMs = respondedAt - askedAt;
      const isBetter = best === null || tookMs <= Math.max(GOOD_WITHIN_MS, best.tookMs);
      if (!isBetter && best !== null && respondedAt - best.at < GOOD_FOR_MS) return;
      best = { tookMs, at: respondedAt };
      offsetMs = ms - (askedAt + respondedAt) / 2;
    },
  };
}
