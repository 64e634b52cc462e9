import { InvalidArgumentError } from "commander";

const UNITS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Parses a time: an age (`90m`, `6h`, `2d`), `now`, or ISO 8601, UTC without a zone. Returns ISO 8601 in UTC.
 *
 * @example
 * moment("2026-11-21T04:00"); // => "2026-11-21T04:00:00.000Z"
 */
export function moment(text: string): string {
  const [, count = "", unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (text === "now") return new Date().toISOString();
  if (unit !== "") return new Date(Date.now() - Number(count) * (UNITS[unit] ?? 0)).toISOString();
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(text);
  const isTime = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$/.test(text);
  const at =
    isDay || isTime
      ? new Date(isTime && !/(Z|[+-]\d{2}:?\d{2})$/.test(text) ? `${text.replace(" ", "T")}Z` : text)
      : null;
  if (at !== null && !Number.isNaN(at.getTime())) return at.toISOString();
  throw new InvalidArgumentError("expected a time such as 2026-11-21T04:00, or how long ago: 90m, 6h, 2d.");
}

/**
 * Parses a future time: a duration from now (`90m`, `6h`, `2d`), or ISO 8601, UTC without a zone. Returns ISO 8601 in UTC.
 *
 * @throws InvalidArgumentError on a time in the past.
 */
export function momentAhead(text: string): string {
  const [, count = "", unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const at = unit === "" ? moment(text) : new Date(Date.now() + Number(count) * (UNITS[unit] ?? 0)).toISOString();
  if (Date.parse(at) > Date.now()) return at;
  throw new InvalidArgumentError("expected a time ahead, such as 2026-11-21T06:00, or how long from now: 90m, 6h, 2d.");
}
