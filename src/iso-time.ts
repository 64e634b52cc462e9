/** A time: `ms` since 1970 for comparing, `iso` in UTC with up to microseconds for storing. */
export interface Moment {
  ms: number;
  iso: string;
}

const ISO =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)? ?(Z|[+-](?:0\d|1[0-5])(?::?[0-5]\d)?)?$/i;

/**
 * Reads an ISO 8601 day or time, UTC without a zone. Null for any other text and for days that do not exist, which
 * JavaScript reads as later ones.
 *
 * @example
 * readIsoTime("2026-11-21T04:00+02:00")?.iso; // => "2026-11-21T02:00:00Z"
 * readIsoTime("2026-02-30"); // => null
 */
export function readIsoTime(text: string): Moment | null {
  const found = ISO.exec(text);
  if (found === null) return null;
  const [, year, month, day, hour = "00", minute = "00", second = "00", fraction = "", zone = "Z"] = found;
  const local = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  if (Number.isNaN(local.getTime()) || local.getUTCDate() !== Number(day)) return null;
  return momentOf(local.getTime() - zoneMinutes(zone) * 60_000, fraction);
}

/**
 * Whether a text is a time in UTC with seconds and up to seven digits, as responses and lists have it.
 *
 * @example
 * isUtcTime("2026-11-21T04:00:12.1234560Z"); // => true
 */
export function isUtcTime(text: string): boolean {
  return /T\d\d:\d\d:\d\d(?:\.\d{1,7})?Z$/.test(text) && readIsoTime(text) !== null;
}

/** The time of whole seconds since 1970 (in milliseconds) and digits of a fraction; null if its year is not from 1 to 9999. */
export function momentOf(wholeSecondsMs: number, fraction: string): Moment | null {
  const date = new Date(wholeSecondsMs);
  if (Number.isNaN(date.getTime()) || date.getUTCFullYear() > 9999 || date.getUTCFullYear() < 1) return null;
  const micros = fraction.slice(0, 6);
  return {
    ms: date.getTime() + Number(`0.${fraction === "" ? "0" : fraction}`) * 1000,
    iso: `${date.toISOString().slice(0, 19)}${micros === "" ? "" : `.${micros}`}Z`,
  };
}

function zoneMinutes(zone: string): number {
  if (zone.toUpperCase() === "Z") return 0;
  const digits = zone.slice(1).replace(":", "").padEnd(4, "0");
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2));
  return zone.startsWith("-") ? -minutes : minutes;
}
