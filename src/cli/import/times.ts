import { describe } from "../../houses/reading/excerpt.ts";
import { parseOccurredAt } from "../../houses/reading/occurred-at.ts";
import type { DateShape } from "../../import/plan.ts";
import type { ImportedMoment } from "../../import/row.ts";
import type { Moment } from "../../iso-time.ts";
import { localTimesIn } from "./zone.ts";

/** Which number of a date such as 3/4/2024 is the month; `auto` if the notation decides. */
export type DateOrder = "auto" | "month_first" | "day_first";

/** ISO 8601 without a zone: a given zone applies to it. */
const WITHOUT_ZONE = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?$/;
/** 4/11/2024, 1:21:03 PM · 11.04.2024 13:21 · 11-04-2024 */
const YEAR_LAST =
  /^(\d{1,2})([/.-])(\d{1,2})\2(\d{4})(?:,?[\s\u202f]+(\d{1,2}):(\d\d)(?::(\d\d)([.,]\d{1,9})?)?(?:[\s\u202f]?([ap])\.?m\.?)?)?$/i;
/** 2024/4/11 13:21:03 */
const YEAR_FIRST = /^(\d{4})[/.](\d{1,2})[/.](\d{1,2})(?:,?[T\s]+(\d{1,2}:\d\d.*))?$/;
/** A page's "5 days ago on Fri May 03 2024 23:56:01 GMT+0200 (…)". */
const AGO = /^.{0,40} ago on /i;

/**
 * A parser of the times in files: what houses send (ISO 8601, seconds or milliseconds since 1970, the dates of browsers
 * and of HTTP), and dates as spreadsheets and pages write them. A date with slashes and AM or PM has the month first, one
 * with points the day; any other is refused unless `dates` decides. Times without a zone are local to `zone`, by default
 * UTC. Null if it is not a time.
 */
export function timesOf({
  zone,
  dates,
}: {
  zone: string | null;
  dates: DateOrder;
}): (text: string) => ImportedMoment | { reason: string } | null {
  const toMoment = zone === null ? (asUtc: Moment): ImportedMoment => asUtc : localTimesIn(zone);
  return (raw) => {
    const text = raw.replace(AGO, "").trim();
    const local = WITHOUT_ZONE.test(text) ? text : fromDate(text, dates);
    if (local === null) return parseOccurredAt(text);
    if (typeof local !== "string") return local;
    const asUtc = parseOccurredAt(local);
    return asUtc === null ? null : toMoment(asUtc);
  };
}

/** A date of another notation as ISO 8601 without a zone; null if it is not a date. */
function fromDate(text: string, dates: DateOrder): string | { reason: string } | null {
  const yearFirst = YEAR_FIRST.exec(text);
  if (yearFirst !== null) {
    const [, year = "", month = "", day = "", clock] = yearFirst;
    return `${year}-${two(month)}-${two(day)}${clock === undefined ? "" : `T${clock.padStart(clock.indexOf(":") === 1 ? clock.length + 1 : 0, "0")}`}`;
  }
  const found = YEAR_LAST.exec(text);
  if (found === null) return null;
  const [, first = "", mark, second = "", year, hour, minute, seconds = "00", fraction = "", half] = found;
  const asWritten = mark === "." ? "day_first" : half !== undefined && mark === "/" ? "month_first" : "auto";
  const order = dates === "auto" ? asWritten : dates;
  if (order === "auto") {
    return {
      reason: `expected a date whose month is known (--dates month_first or day_first), found ${describe(text)}`,
    };
  }
  if (dates === "auto" && dateShape(text) === "day_first") {
    return {
      reason: `expected a date with the month first, as with AM or PM, found ${describe(text)}; state --dates day_first`,
    };
  }
  const [month, day] = order === "month_first" ? [first, second] : [second, first];
  const date = `${year}-${two(month)}-${two(day)}`;
  if (hour === undefined) return date;
  const hours = half === undefined ? Number(hour) : hourOf(Number(hour), half);
  return hours === null ? null : `${date}T${two(String(hours))}:${minute}:${seconds}${fraction.replace(",", ".")}`;
}

/** The evidence in a date with slashes on its file: a day that is first, or AM or PM, with which the month is assumed first. */
export function dateShape(text: string): DateShape {
  const [, first, mark, second] = YEAR_LAST.exec(text.replace(AGO, "").trim()) ?? [];
  if (mark !== "/" || Number(second) > 12) return "clear";
  return Number(first) > 12 ? "day_first" : "unclear";
}

/** The hour of a day from a 12-hour clock. */
function hourOf(hour: number, half: string): number | null {
  if (hour < 1 || hour > 12) return null;
  return (hour % 12) + (half.toLowerCase() === "p" ? 12 : 0);
}

function two(digits: string): string {
  return digits.padStart(2, "0");
}
