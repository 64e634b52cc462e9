import { expect, test } from "vitest";
import { parseRetryAfter } from "../../../src/houses/polling/retry-after.ts";

const now = Date.parse("2026-11-21T04:00:00Z");

test.each([
  ["30", 30_000],
  [" 30 ", 30_000],
  ["0", 1_000],
  ["86400", 900_000],
  ["999999999", 900_000],
  ["Sat, 21 Nov 2026 04:01:00 GMT", 60_000],
  ["Sat, 21 Nov 2026 03:00:00 GMT", 1_000],
  ["Fri, 01 Jan 2038 00:00:00 GMT", 900_000],
])("%j asks to wait %d ms, from a second to a quarter of an hour", (header, waitMs) => {
  expect(parseRetryAfter(header, null, now)).toBe(waitMs);
});

test.each([null, "", "soon", "-5", "1.5", "1e3", "99999999999"])("%j asks for nothing", (header) => {
  expect(parseRetryAfter(header, null, now)).toBeNull();
});

test("a date is measured by the clock of the house that wrote it", () => {
  const house = "Sat, 21 Nov 2026 09:00:00 GMT";
  expect(parseRetryAfter("Sat, 21 Nov 2026 09:00:20 GMT", house, now)).toBe(20_000);
});
