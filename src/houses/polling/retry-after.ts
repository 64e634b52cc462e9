const SHORTEST_MS = 1_000;
const LONGEST_MS = 15 * 60_000;

/**
 * The wait that a Retry-After header asks for, in milliseconds from 1 s to 15 min: a house can neither suspend its polls for a
 * day nor be flooded. Null if there is no header or it cannot be parsed.
 *
 * A date is measured against the house's own `date` header if present, so that a wrong clock on either side does not
 * matter, else against `nowMs`.
 */
export function parseRetryAfter(header: string | null, date: string | null, nowMs: number): number | null {
  if (header === null) return null;
  const text = header.trim();
  const waitMs = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : untilDate(text, date, nowMs);
  return Number.isNaN(waitMs) ? null : Math.min(Math.max(waitMs, SHORTEST_MS), LONGEST_MS);
}

function untilDate(text: string, date: string | null, nowMs: number): number {
  if (!/^[A-Z][a-z]+,? /.test(text)) return Number.NaN; // Date.parse would read "-5" as a year
  const houseNow = Date.parse(date ?? "");
  return Date.parse(text) - (Number.isNaN(houseNow) ? nowMs : houseNow);
}
