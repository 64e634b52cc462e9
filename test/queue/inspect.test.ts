import { afterEach, beforeEach, describe, expect, it } from "vitest";
import * as rates from "../../src/queue/runs/rates.ts";
import * as failures from "../../src/queue/runs/failed.ts";
import {
  chooseFailed,
  discardRuns,
  findRun,
  groupFailures,
  listFailed,
  listQueues,
  listRuns,
  listSchedules,
  pauseQueue,
  promoteRuns,
  type Queues,
  readRates,
  resumeQueue,
  retryRuns,
  type RunState,
  listPauses,
} from "../../src/queue/runs/inspect.ts";
import { eventually } from "../support/eventually.ts";
import { listExamples, runExample } from "../support/examples.ts";
import { lockWaits } from "../support/lock-waits.ts";
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

/** The offset of an hourly schedule whose next start is far away. */
const inHalfAnHour = () => (Date.now() + 1_800_000) % 3_600_000;

async function retry(queues: Queues, id: string | null): Promise<number> {
  const chosen = await chooseFailed(queues, "fragile", id);
  const tokens = chosen.map(({ token }) => token);
  return (await retryRuns(queues, "fragile", tokens)).done;
}

describe("an operator", () => {
  it("sees what every queue holds", async () => {
    const queues = await world.open([plain, fragile]);
    await queues.enqueue(plain, { house: "alpha" });
    await queues.enqueue(plain, { house: "beta" });
    await queues.get("plain").upsertJobScheduler("gamma", { every: 3_600_000, offset: 1 }, { name: "plain" });
    const [state, other] = await listQueues(queues, await listPauses(world.sql));
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

  it("pauses a queue with name and reason, reports an earlier pause, and resumes only the pause that was seen", async () => {
    const queues = await world.open([plain]);
    const pause = { queue: "plain", by: "ann", reason: "too loud" };
    expect(await pauseQueue(world.sql, queues, pause)).toMatchObject({ ok: true, isApplied: true });
    expect(await pauseQueue(world.sql, queues, { ...pause, by: "bob", reason: "still too loud" })).toEqual({
      ok: false,
      problem: expect.stringMatching(/^plain is paused already: by ann since .*Z, until it is resumed: too loud$/),
    });
    expect(await queues.get("plain").isPaused()).toBe(true);
    const [state] = await listQueues(queues, await listPauses(world.sql));
    expect(state).toMatchObject({ paused: { pausedBy: "ann", reason: "too loud", until: null } });
    expect(await resumeQueue(world.sql, queues, { queue: "plain", version: "2020-01-01 00:00:00+00" })).toMatchObject({
      ok: false,
      problem: expect.stringContaining("not the one that you saw: by ann"),
    });
    const version = state?.paused?.version ?? "";
    expect(await resumeQueue(world.sql, queues, { queue: "plain", version })).toMatchObject({
      ok: true,
      isApplied: true,
    });
    expect(await queues.get("plain").isPaused()).toBe(false);
    expect(await resumeQueue(world.sql, queues, { queue: "plain" })).toMatchObject({
      ok: false,
      problem: expect.stringContaining("plain is not paused"),
    });
  });

  it("whose pauses meet sees one of them refused, with the name of the other", async () => {
    const queues = await world.open([plain]);
    const outcomes = await Promise.all(
      ["ann", "bob"].map((by) => pauseQueue(world.sql, queues, { queue: "plain", by, reason: "too loud" })),
    );
    expect(outcomes.filter(({ ok }) => ok)).toHaveLength(1);
    const [state] = await listQueues(queues, await listPauses(world.sql));
    expect(outcomes.find(({ ok }) => !ok)).toMatchObject({
      problem: expect.stringContaining(`by ${state?.paused?.pausedBy}`),
    });
  });

  it("pauses a queue that was resumed while it was refused", async () => {
    const queues = await world.open([plain]);
    const pause = { queue: "plain", by: "ann", reason: "too loud" };
    await pauseQueue(world.sql, queues, pause);
    await world.sql.unsafe(`
      create function wait_here() returns trigger language plpgsql as $$
        begin perform pg_advisory_xact_lock(1); return null; end $$;
      create trigger wait_here after insert on queue_controls execute function wait_here()`);
    let paused: ReturnType<typeof pauseQueue> | undefined;
    await world.sql.begin(async (holder) => {
      await holder`select pg_advisory_xact_lock(1)`;
      paused = pauseQueue(world.sql, queues, { ...pause, by: "bob" });
      await lockWaits(world.sql, 1); // it has found the pause of ann
      await resumeQueue(world.sql, queues, { queue: "plain" });
    });
    expect(await paused).toMatchObject({ ok: true, isApplied: true });
    expect(await listPauses(world.sql)).toMatchObject([{ pausedBy: "bob" }]);
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
    expect(await retry(queues, failed[0]?.id ?? "")).toBe(1);
    await eventually(() => world.lines.filter(({ msg }) => msg === "done").length === 1);
    expect(world.lines.find(({ msg }) => msg === "done")).toMatchObject({ attempt: 1 });
    expect(await retry(queues, null)).toBe(2);
    await eventually(() => world.lines.filter(({ msg }) => msg === "done").length === 3);
    expect(await listFailed(queues, { limit: 10 })).toEqual([]);
  });

  it("discards exactly the failed runs that were seen, counts reasons, and leaves what failed again since", async () => {
    isBroken = true;
    const queues = await world.open([fragile]);
    await world.start([fragile]);
    for (const house of ["alpha", "beta"]) await queues.enqueue(fragile, { house });
    const seen = await eventually(async () => {
      const found = await listFailed(queues, { queue: "fragile", limit: 10 });
      return found.length === 2 && found;
    });
    expect(groupFailures(seen)).toMatchObject([{ reason: "the house is on fire", runs: 2 }]);
    await retry(queues, seen[0]?.id ?? "");
    await eventually(async () => {
      const now = await listFailed(queues, { queue: "fragile", limit: 10 });
      return now.length === 2 && !now.some(({ token }) => token === seen[0]?.token);
    });
    const tokens = seen.map(({ token }) => token);
    expect(await discardRuns(queues, { queue: "fragile", state: "failed", tokens })).toEqual({ done: 1, changed: 1 });
    expect(await listFailed(queues, { queue: "fragile", limit: 10 })).toMatchObject([{ id: seen[0]?.id }]);
    const { failed } = await readRates(queues, "fragile", 5, Date.now());
    expect(failed.total).toBe(3); // in the running minute too: two, and one of them again
  });

  it("sees of a run each failed attempt with its time, error and stack, and no secret", async () => {
    const broken = makeJob({
      name: "broken",
      retry: { attempts: 2, firstMs: 1, maxMs: 1 },
      async run() {
        const cause = new Error("connection to redis://app:hunter2@cache:6379 refused");
        throw new Error("the house is on fire", { cause });
      },
    });
    const queues = await world.open([broken]);
    await world.start([broken]);
    await queues
      .get("broken")
      .add(
        "broken",
        { house: "alpha", note: "Bearer abcdefgh", token: "tell-nobody" },
        { attempts: 2, stackTraceLimit: 5 },
      );
    const [failed] = await eventually(async () => {
      const found = await listFailed(queues, { queue: "broken", limit: 10 });
      return found.length === 1 && found;
    });
    const run = await findRun(queues, "broken", failed?.id ?? "");
    expect(run).toMatchObject({
      queue: "broken",
      state: "failed",
      attempts: 2,
      payload: { house: "alpha", note: "Bearer [redacted]", token: "[redacted]" },
      reason: "the house is on fire: connection to redis://app:***@cache:6379 refused",
      options: { attempts: 2 },
    });
    expect(run?.failures).toHaveLength(2);
    for (const [at, failure] of (run?.failures ?? []).entries()) {
      expect(failure).toMatch(
        new RegExp(`^attempt ${at + 1} failed at 2\\d{3}-.*Z after \\d+ ms\nError: the house is on fire`),
      );
      expect(failure).toMatch(/inspect\.test\.ts\S*:\d/); // the place that threw, not the queue's own
      expect(failure).toContain("caused by: Error: connection to redis://app:***@cache:6379 refused");
    }
    expect(await findRun(queues, "broken", "no such run")).toBeNull();
    const kept = await queues.redis.hget(queues.get("broken").toKey(failed?.id ?? ""), "stacktrace");
    expect(kept).not.toContain("hunter2");
  });

  it("lists runs by state, starts a delayed one now, and cannot discard the next start of a schedule", async () => {
    const queues = await world.open([plain]);
    const queue = queues.get("plain");
    await queue.upsertJobScheduler(
      "gamma",
      { every: 3_600_000, offset: inHalfAnHour() },
      { name: "plain", data: { house: "gamma" } },
    );
    await queue.add("plain", { house: "alpha" }, { delay: 60_000 });
    await queue.add("plain", { house: "beta" });
    const list = (state: RunState) => listRuns(queues, "plain", { state, from: 0, limit: 10 });
    expect(await list("waiting")).toMatchObject([{ payload: { house: "beta" }, dueAt: null }]);
    expect(await list("active")).toEqual([]);
    const [soon, scheduled] = await list("delayed");
    expect(soon).toMatchObject({ payload: { house: "alpha" }, isScheduled: false });
    expect(Number(soon?.dueAt) - Number(soon?.addedAt)).toBe(60_000);
    expect(scheduled).toMatchObject({ payload: { house: "gamma" }, isScheduled: true });
    const tokens = [soon?.token ?? "", scheduled?.token ?? ""];
    expect(await discardRuns(queues, { queue: "plain", state: "delayed", tokens: tokens.slice(1) })).toEqual({
      done: 0,
      changed: 1,
    });
    expect(await promoteRuns(queues, "plain", tokens)).toEqual({ done: 2, changed: 0 });
    expect(await promoteRuns(queues, "plain", tokens)).toEqual({ done: 0, changed: 2 });
    expect((await list("waiting")).map(({ payload }) => payload)).toEqual([
      { house: "beta" },
      { house: "alpha" },
      { house: "gamma" },
    ]);
    const [first] = await list("waiting");
    const chosen = { queue: "plain", state: "waiting" as const, tokens: [first?.token ?? ""] };
    expect(await discardRuns(queues, chosen)).toEqual({ done: 1, changed: 0 });
    expect(await list("waiting")).toHaveLength(2);
  });

  it("starts the next run of a schedule now, and the schedule continues", async () => {
    let runs = 0;
    const offsetMs = inHalfAnHour();
    const job = makeJob({
      name: "hourly",
      retry: { attempts: 1, firstMs: 0, maxMs: 0 },
      schedule: async () => [{ payload: { house: "alpha" }, everyMs: 3_600_000, offsetMs }],
      run: async () => ({ runs: ++runs }),
    });
    const queues = await world.open([job]);
    await world.start([job]);
    const next = async () => (await listRuns(queues, "hourly", { state: "delayed", from: 0, limit: 10 })).at(0);
    const due = await eventually(next);
    await promoteRuns(queues, "hourly", [due.token]);
    await eventually(() => runs === 1);
    const after = await eventually(next);
    expect(Number(after.dueAt)).toBeGreaterThanOrEqual(Number(due.dueAt));
    // BullMQ schedules the start after the one that was promoted; the reconciler takes it back
    await eventually(async () => {
      const [schedule] = await listSchedules(queues, Date.now());
      return Number(schedule?.next) - Date.now() <= 3_600_000;
    });
    expect(await queues.get("hourly").getDelayedCount()).toBe(1);
    expect(runs).toBe(1);
  });

  it("sees how late each start is", async () => {
    const queues = await world.open([{ ...plain, schedule: async () => [] }]);
    const every = { every: 3_600_000, offset: inHalfAnHour() };
    await queues.get("plain").upsertJobScheduler("gamma", every, { name: "plain" });
    const [ahead] = await listSchedules(queues, Date.now());
    expect(ahead).toMatchObject({ queue: "plain", key: "gamma", everyMs: 3_600_000, lateMs: 0 });
    const [late] = await listSchedules(queues, Number(ahead?.next) + 7_000);
    expect(late?.lateMs).toBe(7_000);
  });

  it("is refused with the known queues, or because the run does not exist", async () => {
    const queues = await world.open([plain, fragile]);
    await expect(chooseFailed(queues, "palin", null)).rejects.toThrow(
      'there is no queue "palin"; there are plain, fragile',
    );
    await expect(chooseFailed(queues, "plain", "77")).rejects.toThrow("queue plain has no failed run 77");
  });
});

it("figures hold as their examples say", () => {
  const examples = ["src/queue/runs/rates.ts", "src/queue/runs/failed.ts"].flatMap(listExamples);
  const claims = examples.flatMap((example) => runExample(example, { ...rates, ...failures }));
  expect(claims.length).toBeGreaterThan(2);
  for (const { line, actual, expected } of claims) expect(actual, line).toEqual(expected);
});
