import type { Moment } from "../../iso-time.ts";
import type { ImportedMoment } from "../../import/row.ts";

const DAY_MS = 86_400_000;
/** Every zone changes its offset at a quarter of an hour. */
const QUARTER_MS = 900_000;

/** The name of a time zone as Intl writes it, such as Europe/Berlin; null if there is no such zone. */
export function findZone(name: string): string | null {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return null;
  }
}

/**
 * A converter of local times: takes one as if its zone were UTC and returns the instant. A local time that occurs twice,
 * when the clock is put back, is the later one; one that is skipped is shifted forward as far as the clock was (usually an
 * hour). Both are marked.
 */
export function localTimesIn(zone: string): (asUtc: Moment) => ImportedMoment {
  const offsetAt = offsetsOf(zone);
  const aroundDay = keepLast((day: number): readonly [number, number] => [
    offsetAt((day - 1) * DAY_MS),
    offsetAt((day + 2) * DAY_MS),
  ]);
  return (asUtc) => {
    const [before, after] = aroundDay(Math.floor(asUtc.ms / DAY_MS));
    if (before === after) return shifted(asUtc, before);
    const fits = [before, after].filter((offsetMs) => offsetAt(asUtc.ms - offsetMs) === offsetMs);
    if (fits.length === 0) return { ...shifted(asUtc, before), clock: "never" };
    const later = Math.min(...fits);
    return fits.length === 1 ? shifted(asUtc, later) : { ...shifted(asUtc, later), clock: "twice" };
  };
}

function shifted({ ms, iso }: Moment, offsetMs: number): Moment {
  const second = new Date(Math.floor(ms / 1000) * 1000 - offsetMs);
  return { ms: ms - offsetMs, iso: second.toISOString().slice(0, 19) + iso.slice(19) };
}

/** How far the zone is ahead of UTC at an instant, in milliseconds. */
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
  const offsetOf = keepLast((quarter: number) => {
    const at = new Date(quarter * QUARTER_MS);
    const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
    return Date.UTC(year, month - 1, day, hour, minute, second) - at.getTime();
  });
  return (ms) => offsetOf(Math.floor(ms / QUARTER_MS));
}

/** Rounds of a file follow each other, so most lookups repeat the last one. */
function keepLast<Result>(work: (of: number) => Result): (of: number) => Result {
  let kept: { of: number; result: Result } | null = null;
  return (of) => {
    if (kept?.of !== of) kept = { of, result: work(of) };
    return kept.result;
  };
}
