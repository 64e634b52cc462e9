import { expect, it } from "vitest";
import { followClock } from "../../src/published/database-clock.ts";

/** What the clock shows beyond the time of this process. */
function shift(clock: ReturnType<typeof followClock>): number {
  return Math.round(clock.nowMs() - performance.now());
}

it("the clock of the database is taken from the middle of a look that was answered soon", () => {
  const clock = followClock();
  clock.heard(5_100, 0, 200);
  expect(shift(clock)).toBe(5_000);
  clock.heard(6_000, 1_000, 1_010);
  expect(shift(clock)).toBe(4_995);
});

it("a look that took long, as after a stall, does not move it", () => {
  const clock = followClock();
  clock.heard(5_000, 0, 10);
  clock.heard(9_000, 1_000, 8_000);
  expect(shift(clock)).toBe(4_995);
  clock.heard(14_000, 9_000, 9_240);
  expect(shift(clock)).toBe(4_880);
});

it("with nothing but slow looks the best of them counts, and after an hour any", () => {
  const clock = followClock();
  clock.heard(3_000, 0, 2_000);
  expect(shift(clock)).toBe(2_000);
  clock.heard(4_000, 1_000, 4_000);
  expect(shift(clock)).toBe(2_000);
  clock.heard(7_000, 4_000, 5_000);
  expect(shift(clock)).toBe(2_500);
  clock.heard(3_611_000, 3_604_000, 3_610_000);
  expect(shift(clock)).toBe(4_000);
});
