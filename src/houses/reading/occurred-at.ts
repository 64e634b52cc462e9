import { type Moment, momentOf, readIsoTime } from "../../iso-time.ts";
import { WireNumber } from "./wire-json.ts";

const EPOCH = /^(\d{1,16})(?:\.(\d{1,9}))?$/;
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
  return fromEpoch(text) ?? readIsoTime(text) ?? fromDate(text);
}

function fromEpoch(text: string): Moment | null {
  const found = EPOCH.exec(text);
  if (found === null) return null;
  const [, whole = "", decimals = ""] = found;
  const inMilliseconds = Number(whole) >= MILLISECONDS_FROM;
  const seconds = inMilliseconds ? Math.floor(Number(whole) / 1000) : Number(whole);
  const fraction = inMilliseconds ? String(Number(whole) % 1000).padStart(3, "0") + decimals : decimals;
  return momentOf(seconds * 1000, fraction);
}

function fromDate(text: string): Moment | null {
  const date = RFC_1123.test(text) ? text : BROWSER.exec(text)?.[1];
  return date === undefined ? null : momentOf(Date.parse(date), "");
}
