import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listFailed, listQueues, pauseQueue, resumeQueue, retryFailed } from "../../src/queue/inspect.ts";
import { eventually } from "../support/eventually.ts";
import { createWorld, makeJob, type World } from "./world.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.end());

const plain = makeJob({ name: "plain" });
let isBroken = true;
const fragile = makeJob({
  name: "fragile",
  retry: { attempts: 2, firstMs: 1, maxMs: 1 },
  async run() {
    if (isBroken) throw new Error("the house is on fire");
    return { done: 1 };
  },
});

describe("an operator", () => {
  it("sees what every queue holds", async () => {
    const queues = await world.open([plain, fragile]);
    await queues.enqueue(plain, { house: "alpha" });
    await queues.enqueue(plain, { house: "beta" });
    await queues.get("plain").upsertJobScheduler("gamma", { every: 3_600_000, offset: 1 }, { name: "plain" });
    const [state, other] = await listQueues(queues, world.sql);
    expect(state).toMatchObject({
      queue: "plain",
      waiting: 2,
      active: 0,
      delayed: 1,
      failed: 0,
      schedules: 1,
      paused: null,
    });
    expect(Math.abs(Number(state?.waitingSince) - Date.now())).toBeLessThan(60_000);
    expect(other).toMatchObject({ queue: "fragile", waiting: 0, waitingSince: null });
  });

  it("pauses a queue with name and reason, and lets it go on", async () => {
    const queues = await world.open([plain]);
    await pauseQueue(world.sql, queues, { queue: "plain", by: "ann", reason: "too loud" });
    await pauseQueue(world.sql, queues, { queue: "plain", by: "bob", reason: "still too loud" });
    expect(await queues.get("plain").isPaused()).toBe(true);
    expect(await listQueues(queues, world.sql)).toMatchObject([
      { paused: { pausedBy: "bob", reason: "still too loud", pausedAt: expect.any(Date) } },
    ]);
    await resumeQueue(world.sql, queues, "plain");
    expect(await queues.get("plain").isPaused()).toBe(false);
    expect(await listQueues(queues, world.sql)).toMatchObject([{ paused: null }]);
  });

  it("retries failed runs, one or all, with all their attempts", async () => {
    isBroken = true;
    const queues = await world.open([fragile]);
    await world.start([fragile]);
    for (const house of ["alpha", "beta", "gamma"]) await queues.enqueue(fragile, { house });
    const failed = await eventually(async () => {
      const found = await listFailed(queues, { queue: "fragile", limit: 10 });
      return found.length === 3 && found;
    });
    expect(failed[0]).toMatchObject({
      attempts: 2,
      reason: "the house is on fire",
      failedAt: expect.any(Date),
    });
    expect(await listFailed(queues, { limit: 2 })).toHaveLength(2);
    isBroken = false;
    expect(await retryFailed(queues, "fragile", failed[0]?.id ?? "")).toBe(1);
    await eventually(() => world.lines.filter(({ msg }) => msg === "done").length === 1);
    expect(world.lines.find(({ msg }) => msg === "done")).toMatchObject({ attempt: 1 });
    expect(await retryFailed(queues, "fragile", null)).toBe(2);
    await eventually(() => world.lines.filter(({ msg }) => msg === "done").length === 3);
    expect(await listFailed(queues, { limit: 10 })).toEqual([]);
  });

  it("is told which queues there are, and that a run is not there", async () => {
    const queues = await world.open([plain, fragile]);
    await expect(retryFailed(queues, "palin", null)).rejects.toThrow(
      'there is no queue "palin"; there are plain, fragile',
    );
    await expect(retryFailed(queues, "plain", "77")).rejects.toThrow("queue plain has no failed run 77");
  });
});
