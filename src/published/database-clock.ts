/** A reading that took longer says too little, unless there is no better one. */
const GOOD_WITHIN_MS = 250;
/** Clocks drift apart by parts of a second a day: after this long a bad reading says more than an old good one. */
const GOOD_FOR_MS = 3_600_000;

/** The time of the database, as far as this process knows it. */
export interface DatabaseClock {
  nowMs(): number;
  /**
   * Takes in that the database said `ms` between two moments of `performance.now()`. It may have said so at any time
   * between them, so it counts for their middle; a slow answer, as after a stall, changes nothing.
   */
  heard(ms: number, askedAt: number, answeredAt: number): void;
}

/** Follows the clock of the database by what it says of itself; before the first word, it is 1970. */
export function followClock(): DatabaseClock {
  let offsetMs = 0;
  let best: { tookMs: number; at: number } | null = null;
  return {
    nowMs: () => offsetMs + performance.now(),
    heard(ms, askedAt, answeredAt) {
      const tookMs = answeredAt - askedAt;
      const isBetter = best === null || tookMs <= Math.max(GOOD_WITHIN_MS, best.tookMs);
      if (!isBetter && best !== null && answeredAt - best.at < GOOD_FOR_MS) return;
      best = { tookMs, at: answeredAt };
      offsetMs = ms - (askedAt + answeredAt) / 2;
    },
  };
}
