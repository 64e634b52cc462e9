import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UsageError } from "../../src/errors.ts";
import { type ClockReading, clockProblem, readClocks, requireRightClock } from "../../src/queue/clock.ts";
import { createWorld, type World } from "./world.ts";

const reading = (skewMs: number, uncertaintyMs = 1, server: ClockReading["server"] = "PostgreSQL"): ClockReading => {
  return { server, skewMs, uncertaintyMs };
};

describe("a clock", () => {
  it.each([
    ["exactly right", [reading(0)]],
    ["half a second off", [reading(500), reading(-500, 1, "Redis")]],
    ["seemingly wrong, by a response that took as long", [reading(2_000, 1_600)]],
  ])("%s will do", (_, readings) => {
    expect(clockProblem(readings)).toBeNull();
  });

  it("that is ahead or behind is reported with the difference and the reference", () => {
    expect(clockProblem([reading(61_203.7), reading(-900, 1, "Redis")])).toMatch(
      /61204 ms ahead of PostgreSQL's and 900 ms behind Redis's; schedules need at most 500 ms/,
    );
  });
});

describe("a machine", () => {
  let world: World;
  beforeEach(async () => {
    world = await createWorld();
  });
  afterEach(() => world.end());

  it.each([60_000, -60_000])("whose clock is %i ms off is found out by both servers", async (skew) => {
    const { redis } = await world.open([]);
    const readings = await readClocks(world.sql, redis, () => Date.now() + skew);
    expect(readings.map(({ server }) => server)).toEqual(["PostgreSQL", "Redis"]);
    for (const { skewMs, uncertaintyMs } of readings) expect(Math.abs(skewMs - skew)).toBeLessThan(250 + uncertaintyMs);
    await expect(requireRightClock(world.sql, redis, () => Date.now() + skew)).rejects.toThrow(UsageError);
  });

  it("whose clock is right is let in", async () => {
    const { redis } = await world.open([]);
    await expect(requireRightClock(world.sql, redis, Date.now)).resolves.toHaveLength(2);
  });
});
