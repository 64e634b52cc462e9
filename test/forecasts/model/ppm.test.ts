import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { largest, nextColorPpm, ppmOf } from "../../../src/forecasts/model/ppm.ts";

/** 2 to 8 probabilities that sum to 1 up to rounding, some of them tiny. */
const anyShares = fc
  .array(fc.double({ min: 1e-12, max: 1, noNaN: true }), { minLength: 2, maxLength: 8 })
  .map((parts) => parts.map((part) => part / parts.reduce((a, b) => a + b)));

describe("ppm", () => {
  test("colors sum to exactly 1,000,000, each at least 1 and within a few ppm of its probability", () => {
    fc.assert(
      fc.property(anyShares, (p) => {
        const ppm = nextColorPpm(p);
        expect(ppm.reduce((a, b) => a + b)).toBe(1_000_000);
        expect(ppm.every((value) => Number.isInteger(value) && value >= 1)).toBe(true);
        // 1 by rounding, and at most one for each other color that was raised from nothing
        ppm.forEach((value, k) => expect(Math.abs(value - p[k]! * 1e6)).toBeLessThan(p.length));
      }),
    );
  });

  test("what is left over goes to the largest remainders, ties to the lower color", () => {
    expect(nextColorPpm([0.2500004, 0.2500006, 0.499999])).toEqual([250000, 250001, 499999]);
    expect(nextColorPpm([0.25, 0.25, 0.25, 0.25])).toEqual([250000, 250000, 250000, 250000]);
    expect(nextColorPpm(Array.from({ length: 7 }, () => 1 / 7))).toEqual([
      142858, 142857, 142857, 142857, 142857, 142857, 142857,
    ]);
  });

  test("a color without a chance gets 1 from the likeliest", () => {
    expect(nextColorPpm([0, 0.4, 0.6, 0])).toEqual([1, 400000, 599998, 1]);
  });

  test("a sum other than 1 is refused, not hidden", () => {
    expect(() => nextColorPpm([0.5, 0.4])).toThrow("sum to 1, got a sum of 0.9");
    expect(() => nextColorPpm([Number.NaN, 0.4])).toThrow("sum to 1, got a sum of NaN");
  });

  test("one probability is rounded half up and never certain", () => {
    expect([0.5, 0.1234565, 0.1234564, 0, 1].map(ppmOf)).toEqual([500000, 123457, 123456, 1, 999999]);
  });

  test("the likeliest of equals is the lower", () => {
    expect([largest([3, 5, 5]), largest([7, 7]), largest([1, 2, 3])]).toEqual([1, 0, 2]);
  });
});
