import fc from "fast-check";
import { expect, test } from "vitest";
import { hoursOf, portionsOf } from "../../../src/forecasts/accuracy/hour-portions.ts";

const HOUR_MS = 3_600_000;
const timeOf = (hour: number) => new Date(hour * HOUR_MS).toISOString();

const anySpan = fc
  .tuple(fc.integer({ min: 0, max: 1000 }), fc.integer({ min: 0, max: 60 }))
  .map(([from, hours]) => ({ start: timeOf(from), end: timeOf(from + hours) }));

test("portions hold every hour of every span once, in order, and none holds more hours than asked for", () => {
  fc.assert(
    fc.property(fc.array(anySpan, { maxLength: 8 }), fc.integer({ min: 1, max: 50 }), (spans, most) => {
      const portions = [...portionsOf(spans, most)];
      const sizes = portions.map((parts) => parts.reduce((sum, part) => sum + hoursOf(part), 0));
      // all but the last are full, so that there are as few reads as can be
      expect(sizes.every((size, index) => size === most || (index === sizes.length - 1 && size < most))).toBe(true);
      const hours = ({ start, end }: { start: string; end: string }) =>
        Array.from({ length: hoursOf({ start, end }) }, (_, n) => Date.parse(start) / HOUR_MS + n);
      for (const span of spans) {
        const parts = portions.flat().filter((part) => part.span === span);
        expect(parts.flatMap(hours)).toEqual(hours(span));
      }
    }),
  );
});
