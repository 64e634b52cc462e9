import type { UptimeDay } from "./site-store.ts";

/** Days of history on the status page and the pages of houses. */
export const UPTIME_DAYS = 90;

const DAY_MS = 86_400_000;

/** The days of a component as pages show them, and their total. */
export interface ShownUptime {
  days: { day: string; share: number | null }[];
  /** As text, rounded down; null if there is no data. */
  total: string | null;
  known: number;
}

/** The last 90 UTC days until today, oldest first; a day without data has no share. */
export function shownUptime(rows: readonly UptimeDay[], now: Date): ShownUptime {
  const byDay = new Map(rows.map((row) => [row.day, row]));
  const days = Array.from({ length: UPTIME_DAYS }, (_, at) => {
    const day = new Date(now.getTime() - (UPTIME_DAYS - 1 - at) * DAY_MS).toISOString().slice(0, 10);
    const row = byDay.get(day);
    if (row === undefined || row.total === 0) return { day, share: null };
    return { day, share: row.good / row.total };
  });
  const good = rows.reduce((sum, row) => sum + row.good, 0);
  const total = rows.reduce((sum, row) => sum + row.total, 0);
  return {
    days,
    total: total === 0 ? null : percentOf(good, total),
    known: days.filter(({ share }) => share !== null).length,
  };
}

/**
 * A share in percent, rounded down, so that 100 means all.
 *
 * @example
 * percentOf(9_999, 10_000); // => "99.99 %"
 * percentOf(99_999, 100_000); // => "99.99 %"
 * percentOf(5, 5); // => "100 %"
 */
function percentOf(good: number, total: number): string {
  if (good === total) return "100 %";
  return `${(Math.floor((good / total) * 10_000) / 100).toFixed(2)} %`;
}
