const DAY_MS = 86_400_000;

/**
 * Milliseconds until the next UTC day begins, when the calls of a day are there again.
 *
 * @example
 * untilNextDay(Date.UTC(2026, 10, 21, 23, 59, 59)); // => 1000
 * untilNextDay(Date.UTC(2026, 10, 22)); // => 86400000
 */
export function untilNextDay(nowMs: number): number {
  return DAY_MS - (nowMs % DAY_MS);
}

/**
 * Milliseconds until the next UTC month begins, when the calls of a month are there again.
 *
 * @example
 * untilNextMonth(Date.UTC(2026, 11, 31, 23, 59, 59)); // => 1000
 * untilNextMonth(Date.UTC(2028, 1, 1)); // => 2505600000
 */
export function untilNextMonth(nowMs: number): number {
  const now = new Date(nowMs);
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1) - nowMs;
}
