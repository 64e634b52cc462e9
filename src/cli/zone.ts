import { InvalidArgumentError } from "commander";
import { type Moment, parseOccurredAt } from "../houses/occurred-at.ts";

/** ISO 8601 without a zone: what a zone that is given applies to. */
const WITHOUT_ZONE = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?$/;

/** Reads the name of a time zone, such as Europe/Berlin. */
export function zoneName(text: string): string {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: text }).resolvedOptions().timeZone;
  } catch {
    throw new InvalidArgumentError("expected a time zone such as Europe/Berlin.");
  }
}

/**
 * A reader of times in which those without a zone are local to `zone`; all others are read as they are. A local time that comes twice,
 * when clocks are put back, is the later one; one that never comes is an hour later.
 */
export function readTimesIn(zone: string): (text: string) => Moment | null {
  const offsetAt = offsetsOf(zone);
  return (text) => {
    const asUtc = parseOccurredAt(text);
    if (asUtc === null || !WITHOUT_ZONE.test(text.trim())) return asUtc;
    const guessMs = asUtc.ms - offsetAt(asUtc.ms);
    const offsetMs = offsetAt(guessMs);
    const second = new Date(Math.floor(asUtc.ms / 1000) * 1000 - offsetMs);
    return { ms: asUtc.ms - offsetMs, iso: second.toISOString().slice(0, 19) + asUtc.iso.slice(19) };
  };
}

/** How far the zone is ahead of UTC at a moment, in milliseconds. Rounds of a file follow each other, so one quarter is kept. */
function offsetsOf(zone: string): (ms: number) => number {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  });
  const quarterMs = 900_000; // no zone changes its offset but at a quarter of an hour
  let kept = { quarter: NaN, offsetMs: 0 };
  return (ms) => {
    const quarter = Math.floor(ms / quarterMs);
    if (quarter !== kept.quarter) {
      const at = new Date(quarter * quarterMs);
      const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
      const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
      kept = { quarter, offsetMs: Date.UTC(year, month - 1, day, hour, minute, second) - at.getTime() };
    }
    return kept.offsetMs;
  };
}
