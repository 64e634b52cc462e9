import { describe, expect, it } from "vitest";
import { moment, momentAhead } from "../src/cli/time-argument.ts";
import { isUtcTime, readIsoTime } from "../src/iso-time.ts";
import { readCursor, time } from "../src/ops/payloads/listing.ts";
import { readPlace } from "../src/reread/reread-report.ts";

/** Texts that JavaScript reads as other times. */
const WRONG = ["2026-02-30", "2026-11-31T04:00", "2026-02-29 04:00:00Z", "2026-11-21T24:00", "Nov 21", "2026-11", "1"];

describe("a day that does not exist is refused instead of being read as the next one, and so are other notations", () => {
  it.each(WRONG)("%s", (text) => {
    expect(readIsoTime(text)).toBeNull();
    expect(() => moment(text)).toThrow("expected a time such as");
    expect(() => momentAhead(text.replace("2026", "2031"))).toThrow("expected a time");
    expect(time.safeParse(text).success).toBe(false);
  });

  it.each(["+99:00", "-16:00", "+01:60"])("the zone %s", (zone) => {
    expect(readIsoTime(`2026-11-21T04:00${zone}`)).toBeNull();
  });

  it("a cursor and a place of a list", () => {
    expect(readCursor("2026-02-30T00:00:00Z~1")).toBeNull();
    expect(readCursor("2026-02-28T00:00:00.1234567+00~1")).not.toBeNull();
    expect(readPlace("2026-99-99T1Z~1")).toBeNull();
    expect(readPlace("2026-02-28T00:00:00.1234567Z~1")).not.toBeNull();
  });

  it("a time of receipt", () => {
    expect(isUtcTime("2026-02-30T00:00:00Z")).toBe(false);
    expect(isUtcTime("2026-02-28T00:00Z")).toBe(false);
    expect(isUtcTime("2026-02-28T00:00:00.1234567Z")).toBe(true);
  });
});

it("an age is at most 36500 days, so that its time is one that PostgreSQL stores", () => {
  expect(moment("36500d")).toMatch(/^19/);
  expect(() => moment("36501d")).toThrow("expected a time such as");
  expect(() => momentAhead("36501d")).toThrow("expected a time");
});

it("a time in a list may have a zone, and is UTC without one", () => {
  expect(time.parse(" 2026-11-21 04:00+02:00 ")).toBe("2026-11-21T02:00:00.000Z");
  expect(time.parse("2026-11-21")).toBe("2026-11-21T00:00:00.000Z");
  expect(time.parse("")).toBeNull();
});
