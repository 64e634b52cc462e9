import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { beginTimeline, changeSpeed, houseMsAt, speedAt, wallMsAt } from "../../src/demo/timeline.ts";
import { START_MS } from "./world.ts";

const speeds = fc.oneof(
  fc.constantFrom(0.01, 0.1, 0.5, 1, 3, 7, 10, 1000),
  fc.double({ min: 0.01, max: 1000, noNaN: true }),
);
const changes = fc.array(fc.record({ afterMs: fc.integer({ min: 1, max: 100_000 }), speed: speeds }), {
  maxLength: 30,
});

describe("the clock of the demo houses", () => {
  it("has 200 games past at its beginning, at any speed", () => {
    fc.assert(
      fc.property(speeds, (speed) => {
        const past = houseMsAt(beginTimeline(START_MS, speed, 200_000), START_MS);
        expect(past).toBeGreaterThanOrEqual(200_000);
        expect(past).toBeLessThanOrEqual(200_000 + speed + 0.001);
      }),
      { numRuns: 20_000 },
    );
  });

  it("never goes back, however its speed is changed, and keeps twenty stretches at most", () => {
    fc.assert(
      fc.property(speeds, changes, (speed, list) => {
        let timeline = beginTimeline(START_MS, speed, 200_000);
        let nowMs = START_MS;
        for (const change of list) {
          nowMs += change.afterMs;
          const before = houseMsAt(timeline, nowMs);
          timeline = changeSpeed(timeline, nowMs, change.speed);
          expect(speedAt(timeline, nowMs)).toBe(change.speed);
          expect(houseMsAt(timeline, nowMs)).toBeGreaterThanOrEqual(before);
          expect(houseMsAt(timeline, nowMs)).toBeLessThanOrEqual(before + change.speed + 0.001);
        }
        expect(timeline.length).toBeLessThanOrEqual(20);
      }),
      { numRuns: 20_000 },
    );
  });

  it("gives each moment of house time the first millisecond at which it has passed", () => {
    fc.assert(
      fc.property(speeds, changes, fc.integer({ min: 0, max: 1_000_000 }), (speed, list, houseMs) => {
        let timeline = beginTimeline(START_MS, speed, 200_000);
        let nowMs = START_MS;
        for (const change of list.slice(0, 19)) {
          nowMs += change.afterMs;
          timeline = changeSpeed(timeline, nowMs, change.speed);
        }
        const wallMs = wallMsAt(timeline, houseMs);
        expect(houseMsAt(timeline, wallMs)).toBeGreaterThanOrEqual(houseMs);
        expect(houseMsAt(timeline, wallMs - 1)).toBeLessThan(houseMs);
      }),
      { numRuns: 20_000 },
    );
  });

  it("dates a moment by the speed that was in force then", () => {
    const slow = beginTimeline(START_MS, 1, 0);
    const fast = changeSpeed(slow, START_MS + 5_000, 10);
    expect(wallMsAt(fast, 4_000)).toBe(START_MS + 4_000);
    expect(wallMsAt(fast, 5_000)).toBe(START_MS + 5_000);
    expect(wallMsAt(fast, 15_000)).toBe(START_MS + 6_000);
  });
});
