import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import housekeep from "../../jobs/housekeep.ts";
import { loadSettings } from "../../src/config/environment.ts";
import type { Schedule } from "../../src/queue/job.ts";
import type { Queues } from "../../src/queue/queues.ts";
import { syncSchedulers } from "../../src/queue/schedules/schedulers.ts";
import { createWorld, makeJob, type Task, type World } from "./world.ts";

const job = makeJob({ name: "poll", retry: { attempts: 1, firstMs: 0, maxMs: 0 } });
const hourly = (house: string, offsetMs = 1_000): Schedule<Task> => {
  return { payload: { house }, everyMs: 3_600_000, offsetMs };
};

let world: World;
let queues: Queues;
beforeEach(async () => {
  world = await createWorld();
  queues = await world.open([job, housekeep]);
});
afterEach(() => world.end());

const sync = (schedules: Schedule<Task>[], now = Date.now()) => syncSchedulers(queues.get("poll"), job, schedules, now);
const schedulers = async () =>
  (await queues.get("poll").getJobSchedulers()).toSorted((a, b) => (a.key < b.key ? -1 : 1));
const delayed = () => queues.get("poll").getDelayed();

describe("schedules in Redis", () => {
  it("are those of the database, with their next start at the offset", async () => {
    await queues.get("poll").upsertJobScheduler("beta", { pattern: "30 4 * * *", tz: "UTC" }); // of an earlier version
    await sync([hourly("alpha"), { payload: { house: "beta" }, everyMs: 86_400_000, offsetMs: 3_600_000 }]);
    const [alpha, beta] = await schedulers();
    expect(alpha).toMatchObject({
      key: "alpha",
      every: 3_600_000,
      offset: 1_000,
      template: { data: { house: "alpha" } },
    });
    expect((alpha?.next ?? 0) % 3_600_000).toBe(1_000);
    expect(beta).toMatchObject({ key: "beta", every: 86_400_000 });
    expect(beta).not.toHaveProperty("pattern");
    expect(new Date(beta?.next ?? 0).toISOString()).toMatch(/T01:00:00.000Z$/);
  });

  it("start at the multiples of their interval if their offset is 0", async () => {
    await sync([hourly("alpha", 0), { payload: { house: "beta" }, everyMs: 7_000, offsetMs: 7_000 }]);
    const [alpha, beta] = await schedulers();
    expect((alpha?.next ?? 1) % 3_600_000).toBe(0);
    expect((beta?.next ?? 1) % 7_000).toBe(0);
    const waiting = await queues.get("poll").getJobs(["waiting", "delayed"]);
    const ids = new Set(waiting.map(({ id }) => id));
    expect(ids).toEqual(new Set([`repeat:alpha:${alpha?.next}`, `repeat:beta:${beta?.next}`]));
  });

  it("that start at other times than their offset are moved to it", async () => {
    await queues.get("poll").upsertJobScheduler("alpha", { every: 3_600_000 }, { name: "poll" }); // of an earlier version
    await queues.get("poll").upsertJobScheduler("beta", { every: 3_600_000, offset: 2_000 }, { name: "poll" });
    await sync([hourly("alpha", 0), hourly("beta")]);
    const found = await schedulers();
    expect(found.map(({ next }) => (next ?? 0) % 3_600_000)).toEqual([0, 1_000]);
    expect(found.every(({ next }) => (next ?? 0) < Date.now() + 3_601_000)).toBe(true);
    expect(await delayed()).toHaveLength(2);
  });

  it("keep nothing of a run, good or bad, since a kept one would halt the chain", async () => {
    await sync([hourly("alpha")]);
    const [run] = await delayed();
    expect(run?.opts).toMatchObject({ removeOnComplete: true, removeOnFail: true, attempts: 1 });
  });

  it("go when the database no longer has them, with the run that waits", async () => {
    await sync([hourly("alpha"), hourly("beta")]);
    await sync([hourly("beta")]);
    expect((await schedulers()).map(({ key }) => key)).toEqual(["beta"]);
    expect((await delayed()).map(({ data }) => data as unknown)).toEqual([{ house: "beta" }]);
  });

  it("are set over when their pace changes", async () => {
    await sync([hourly("alpha")]);
    await sync([{ payload: { house: "alpha" }, everyMs: 7_200_000, offsetMs: 1_000 }]);
    expect(await schedulers()).toMatchObject([{ key: "alpha", every: 7_200_000 }]);
    expect(await delayed()).toHaveLength(1);
  });

  it("that are right are left alone, so that a waiting run keeps its place", async () => {
    const now: Schedule<Task> = { payload: { house: "alpha" }, everyMs: 3_600_000, offsetMs: 0 };
    await sync([now]);
    await sync([now, hourly("beta")]);
    const before = await queues.get("poll").getJobs(["waiting", "delayed"]);
    await sync([now, hourly("beta")], Date.now() + 60_000);
    const after = await queues.get("poll").getJobs(["waiting", "delayed"]);
    expect(after.map(({ id, timestamp }) => ({ id, timestamp }))).toEqual(
      before.map(({ id, timestamp }) => ({ id, timestamp })),
    );
    expect(before).toHaveLength(2);
  });

  it("whose chain of runs broke are revived", async () => {
    await sync([hourly("alpha")]);
    const [run] = await delayed();
    const queue = queues.get("poll");
    await queues.redis.zrem(queue.toKey("delayed"), run?.id ?? "");
    await queues.redis.del(queue.toKey(run?.id ?? ""));
    expect(await delayed()).toEqual([]);
    await sync([hourly("alpha")], Date.now() + 2 * 3_600_000);
    expect(await delayed()).toHaveLength(1);
  });

  it("that a clock running ahead carried into the future are brought back to their pace", async () => {
    const often: Schedule<Task> = { payload: { house: "alpha" }, everyMs: 2_000, offsetMs: 100 };
    const wrong = { every: 2_000, offset: 100, startDate: Date.now() + 600_000 };
    await queues.get("poll").upsertJobScheduler("alpha", wrong, { name: "poll", data: often.payload });
    expect((await schedulers())[0]?.next).toBeGreaterThan(Date.now() + 500_000);
    await sync([often]);
    expect(await schedulers()).toMatchObject([{ key: "alpha", every: 2_000, offset: 100 }]);
    expect((await schedulers())[0]?.next).toBeLessThan(Date.now() + 3_000);
    expect(await delayed()).toHaveLength(1);
  });

  it("of housekeep that were set while the clock was a month ahead are brought back", async () => {
    const schedules = (await housekeep.schedule?.({ sql: world.sql, settings: loadSettings({}) })) ?? [];
    const set = () => syncSchedulers(queues.get("housekeep"), housekeep, schedules, Date.now());
    const DAY_MS = 86_400_000;
    const now = vi.spyOn(Date, "now").mockReturnValue(Date.now() + 30 * DAY_MS);
    await set();
    now.mockRestore();
    await set();
    const found = await queues.get("housekeep").getJobSchedulers();
    expect(found).toHaveLength(schedules.length);
    expect(found.filter(({ next }) => (next ?? 0) > Date.now() + DAY_MS)).toEqual([]);
  });

  it("may have keys with colons", async () => {
    await sync([hourly("a:b:c:d:5")]);
    expect(await schedulers()).toMatchObject([{ key: "a%3Ab%3Ac%3Ad%3A5" }]);
    await sync([hourly("a:b:c:d:5")]);
    expect(await delayed()).toHaveLength(1);
  });

  it("of one job must differ in their keys", async () => {
    await expect(sync([hourly("alpha"), hourly("alpha", 2_000)])).rejects.toThrow(
      'two schedules of poll have the key "alpha"',
    );
  });
});
