import { describe, expect, it } from "vitest";
import * as calendar from "../../src/usage/calendar.ts";
import { remainingOf, type Quota } from "../../src/usage/quota.ts";
import { listExamples, runExample } from "../support/examples.ts";

it.each(listExamples("src/usage/calendar.ts").map((example) => [example.title, example] as const))(
  "the examples of %s hold",
  (_, example) => {
    for (const { actual, ...claim } of runExample(example, calendar)) {
      expect({ ...claim, expected: actual }).toEqual(claim);
    }
  },
);

describe("what is left of a quota", () => {
  const quota: Quota = {
    dayUsed: 3n,
    monthUsed: 40n,
    dayLimit: 10n,
    monthLimit: 40n,
    atMs: Date.UTC(2026, 11, 31, 23, 59, 58, 500),
  };

  it("is given for the day and for the month, each until it ends, in whole seconds that are never too few", () => {
    expect(remainingOf(quota)).toEqual([
      { name: "day", limit: 10n, windowSeconds: 86_400, left: 7n, resetSeconds: 2 },
      { name: "month", limit: 40n, windowSeconds: 2_592_000, left: 0n, resetSeconds: 2 },
    ]);
  });

  it("is never below zero, for example if a plan has shrunk", () => {
    expect(remainingOf({ ...quota, dayUsed: 50n })[0]?.left).toBe(0n);
  });

  it("is not given for a limit that the plan does not have", () => {
    expect(remainingOf({ ...quota, dayLimit: null, monthLimit: null })).toEqual([]);
  });
});
