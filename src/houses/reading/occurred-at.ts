import { WireNumber } from "./wire-json.ts";

/** A time as a house sends it: `ms` since 1970 for comparing, `iso` in UTC with up to microseconds for storing. */
export interface Moment {
  ms: number;
  iso: string;
}

const EPOCH = /^(\d{1,16})(?:\.(\d{1,9}))?$/;
const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)? ?(Z|[+-]\d\d(?::?\d\d)?)?$/i;
const RFC_1123 = /^(?:[A-Z][a-z]{2}, )?\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d (?:GMT|UTC|[+-]\d{4})$/;
/** The format of a date in a browser; the zone's name in brackets is a comment. */
const BROWSER = /^([A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d GMT[+-]\d{4})(?: \(.*\))?$/;
/** Epoch times from here on are milliseconds: 10^11 s is the year 5138, 10^11 ms is 1973. */
const MILLISECONDS_FROM = 100_000_000_000;

/**
 * Parses the time of a round: ISO 8601 (UTC without a zone), seconds or milliseconds since 1970 as a number or as digits, or
 * an RFC 1123 date. Null for anything else, such as a local clock with an unknown order of day and month.
 */
export function parseOccurredAt(raw: unknown): Moment | null {
  if (typeof raw !== "string" && typeof raw !== "number" && !(raw instanceof WireNumber)) return null;
  const text = String(raw).trim();
  return fromEpoch(text) ?? fromIso(text) ?? fromDate(text);
}

function fromEpoch(text: string): Moment | null {
  const found = EPOCH.exec(text);
  if (found === null) return null;
  const [, whole = "", decimals = ""] = found;
  const inMilliseconds = Number(whole) >= MILLISECONDS_FROM;
  const seconds = inMilliseconds ? Math.floor(Number(whole) / 1000) : Number(whole);
  const fraction = inMilliseconds ? String(Number(whole) % 1000).padStart(3, "0") + decimals : decimals;
  return moment(seconds * 1000, fraction);
}

function fromIso(text: string): Moment | null {
  const found = ISO.exec(text);
  if (found === null) return null;
  const [, year, month, day, hour = "00", minute = "00", second = "00", fraction = "", zone = "Z"] = found;
  const local = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  if (Number.isNaN(local.getTime()) || local.getUTCDate() !== Number(day)) return null;
  return moment(local.getTime() - zoneMinutes(zone) * 60_000, fraction);
}

function fromDate(text: string): Moment | null {
  const date = RFC_1123.test(text) ? text : BROWSER.exec(text)?.[1];
  return date === undefined ? null : moment(Date.parse(date), "");
}

function zoneMinutes(zone: string): number {
  if (zone.toUpperCase() === "Z") return 0;
  const digits = zone.slice(1).replace(":", "").padEnd(4, "0");
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2));
  return zone.startsWith("-") ? -minutes : minutes;
}

function moment(wholeSecondsMs: number, fraction: string): Moment | null {
  const date = new Date(wholeSecondsMs);
  if (Number.isNaN(date.getTime()) || date.getUTCFullYear() > 9999 || date.getUTCFullYear() < 1) return null;
  const micros = fraction.slice(0, 6);
  return {
    ms: date.getTime() + Number(`0.${fraction === "" ? "0" : fraction}`) * 1000,
    iso: `${date.toISOString().slice(0, 19)}${micros === "" ? "" : `.${micros}`}Z`,
  };
}
