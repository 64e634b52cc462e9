import { expect, it } from "vitest";
import { statusOf } from "../../src/houses/status.ts";

const WINDOW_MS = 300_000;
const HOUR_MS = 3_600_000;
const polled = { newestPolledAgeMs: 0, paused: false, enabled: true };

it.each([
  [0, "live"],
  [-5_000, "live"],
  [WINDOW_MS - 1, "live"],
  [WINDOW_MS, "stale"],
  [HOUR_MS - 1, "stale"],
  [HOUR_MS, "offline"],
  [null, "offline"],
])("a newest polled round %j ms old makes a house %s", (newestPolledAgeMs, expected) => {
  expect(statusOf({ ...polled, newestPolledAgeMs }, WINDOW_MS)).toBe(expected);
});

it("what is not polled is offline however new its rounds are", () => {
  expect(statusOf({ ...polled, enabled: false }, WINDOW_MS)).toBe("offline");
});

it("paused takes precedence", () => {
  expect(statusOf({ newestPolledAgeMs: null, paused: true, enabled: false }, WINDOW_MS)).toBe("paused");
});

it("a window longer than an hour leaves nothing stale", () => {
  expect(statusOf({ ...polled, newestPolledAgeMs: 2 * HOUR_MS }, 3 * HOUR_MS)).toBe("live");
});
