import { expect, test } from "vitest";
import { parseOccurredAt } from "../../../src/houses/reading/occurred-at.ts";

test.each([
  ["2022-07-15T08:09:36.580Z", "2022-07-15T08:09:36.580Z"],
  ["2026-11-21T04:00:12.1234561Z", "2026-11-21T04:00:12.123456Z"],
  ["2026-03-17T15:11:34+00:00", "2026-03-17T15:11:34Z"],
  ["2026-03-17T15:11:34.5+02:00", "2026-03-17T13:11:34.5Z"],
  ["2026-03-17T15:11:34-0730", "2026-03-17T22:41:34Z"],
  ["2026-03-17 15:11:34", "2026-03-17T15:11:34Z"],
  ["2026-03-17T15:11", "2026-03-17T15:11:00Z"],
  ["1700698241389", "2023-11-23T00:10:41.389Z"],
  [1780745517219, "2026-06-06T11:31:57.219Z"],
  [1780745517, "2026-06-06T11:31:57Z"],
  ["1780745517.25", "2026-06-06T11:31:57.25Z"],
  ["Tue, 17 Mar 2026 15:12:30 GMT", "2026-03-17T15:12:30Z"],
  ["Fri May 03 2024 23:56:01 GMT+0200 (Central European Summer Time)", "2024-05-03T21:56:01Z"],
])("%j is the moment %s", (raw, iso) => {
  const moment = parseOccurredAt(raw);
  expect(moment?.iso).toBe(iso);
  expect(moment?.ms).toBeCloseTo(Date.parse(iso), 0);
});

test.each([
  "4/11/2024, 1:21:03 PM",
  "yesterday",
  "2026-02-30T00:00:00Z",
  "2026-13-01T00:00:00Z",
  "2026-11-21T25:00:00Z",
  "-5",
  "1e3",
  "99999999999999999",
  "9999999999999999",
  "",
  true,
  null,
  {},
  Number.NaN,
])("%j is no moment", (raw) => {
  expect(parseOccurredAt(raw)).toBeNull();
});
