/** Times in the format of every surface, `2026-11-21T04:00:12.1234560Z`: they compare as strings. */

/**
 * A UTC time of up to seven digits with exactly seven.
 *
 * @example
 * sevenDigits("2026-11-21T04:00:12Z"); // => "2026-11-21T04:00:12.0000000Z"
 * sevenDigits("2026-11-21T04:00:12.125Z"); // => "2026-11-21T04:00:12.1250000Z"
 */
export function sevenDigits(time: string): string {
  return time.length === 28 ? time : `${time.slice(0, 19)}.${time.slice(20, -1).padEnd(7, "0")}Z`;
}

/**
 * Milliseconds from one time to another, exact to a ten-thousandth of one.
 *
 * @example
 * elapsedMs("2026-11-21T04:00:12.1234567Z", "2026-11-21T04:00:13.1234568Z"); // => 1000.0001
 */
export function elapsedMs(from: string, to: string): number {
  return Date.parse(`${to.slice(0, 23)}Z`) - Date.parse(`${from.slice(0, 23)}Z`) + (below(to) - below(from)) / 10_000;
}

/** Ten-thousandths of a millisecond. */
function below(time: string): number {
  return Number(time.slice(23, 27));
}

/** The start of the UTC hour of a time. */
export function hourOf(time: string): string {
  return `${time.slice(0, 13)}:00:00.0000000Z`;
}

/**
 * A PostgreSQL time in UTC, in the format of every surface.
 *
 * @example
 * fromDatabase("2026-11-21 04:00:12.125+00"); // => "2026-11-21T04:00:12.1250000Z"
 */
export function fromDatabase(text: string): string {
  const [date, time = ""] = text.split(" ");
  const [seconds = "", fraction = ""] = time.slice(0, time.lastIndexOf("+")).split(".");
  return `${date}T${seconds}.${fraction.padEnd(7, "0")}Z`;
}

/** The same of a time that may be null. */
export function optionalTime(text: string | null): string | null {
  return text === null ? null : fromDatabase(text);
}

/**
 * A time plus some milliseconds, rounded down to a microsecond, the database's precision.
 *
 * @example
 * laterBy("2026-11-21T04:00:12.1234560Z", 1000.0019); // => "2026-11-21T04:00:13.1234570Z"
 */
export function laterBy(time: string, ms: number): string {
  const micros = Number(time.slice(20, 26)) + Math.floor(ms * 1000);
  const seconds = Math.floor(micros / 1_000_000);
  const whole = new Date(Date.parse(`${time.slice(0, 19)}Z`) + seconds * 1000).toISOString().slice(0, 19);
  return `${whole}.${String(micros - seconds * 1_000_000).padStart(6, "0")}0Z`;
}
