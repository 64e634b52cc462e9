import { InvalidArgumentError } from "commander";
import { readIsoTime } from "../iso-time.ts";

const DAY_MS = 86_400_000;
const UNITS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS };
const LONGEST_MS = 36_500 * DAY_MS;

/**
 * Parses a time: an age (`90m`, `6h`, `2d`), `now`, or ISO 8601, UTC without a zone. Returns ISO 8601 in UTC.
 *
 * @example
 * moment("2026-11-21T04:00"); // => "2026-11-21T04:00:00.000Z"
 */
export function moment(text: string): string {
  if (text === "now") return new Date().toISOString();
  const age = durationMs(text);
  const ms = age === null ? readIsoTime(text)?.ms : Date.now() - age;
  if (ms !== undefined) return new Date(ms).toISOString();
  throw new InvalidArgumentError("expected a time such as 2026-11-21T04:00, or how long ago: 90m, 6h, 2d.");
}

/**
 * Parses a future time: a duration from now (`90m`, `6h`, `2d`), or ISO 8601, UTC without a zone. Returns ISO 8601 in UTC.
 *
 * @throws InvalidArgumentError on a time in the past.
 */
export function momentAhead(text: string): string {
  const duration = durationMs(text);
  const at = duration === null ? moment(text) : new Date(Date.now() + duration).toISOString();
  if (Date.parse(at) > Date.now()) return at;
  throw new InvalidArgumentError("expected a time ahead, such as 2026-11-21T06:00, or how long from now: 90m, 6h, 2d.");
}

/** Milliseconds of a duration such as `90m`; null for any other text and for more than a hundred years. */
function durationMs(text: string): number | null {
  const [, count = "", unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? 0);
  return unit === "" || ms > LONGEST_MS ? null : ms;
}
