import { NO_PASSES } from "../support/context.ts";
import { Worker } from "bullmq";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Consumer, startConsumer } from "../../src/queue/consumer.ts";
import { createOverdueWatch } from "../../src/queue/schedules/overdue.ts";
import type { Queues } from "../../src/queue/queues.ts";
import { connectConsumer } from "../../src/queue/redis.ts";
import { createRunner, type Runner, WAKE } from "../../src/queue/runs/run.ts";
import { loadSettings } from "../../src/config/environment.ts";
import { eventually } from "../support/eventually.ts";
import { createWorld, gate, makeJob, type World } from "./world.ts";

let runs = 0;
const job = makeJob({ name: "sleepy", run: async () => ({ runs: ++runs }) });
let door = gate();
const wide = makeJob({
  name: "wide",
  concurrency: 1_300,
  timeoutMs: 60_000,
  run: async () => door.passed.then(() => ({})),
});

let world: World;
let queues: Queues;
let consumer: Consumer;
let start: (started: typeof job) => { consumer: Consumer; runner: Runner };
let close: () => Promise<void>;
beforeEach(async () => {
  runs = 0;
  door = gate();
  world = await createWorld();
  queues = await world.open([job, wide]);
  const redis = await connectConsumer(world.redisUrl, world.log);
  const { sql, log } = world;
  const context = {
    sql,
    passes: NO_PASSES,
    http: { fetch: () => Promise.reject(new Error("no house is asked here")), close: () => Promise.resolve() },
    settings: loadSettings({}),
    variables: () => undefined,
    enqueue: () => Promise.reject(new Error("nothing is handed over here")),
    published: () => undefined,
  };
  const started: Consumer[] = [];
  start = (one) => {
    const runner = createRunner({ job: one, context, log, stop: new AbortController().signal });
    const its = startConsumer({ job: one, runner, redis, log });
    started.push(its);
    return { consumer: its, runner };
  };
  ({ consumer } = start(job));
  close = async () => {
    door.open();
    await Promise.all(started.map((one) => one.close()));
    redis.disconnect();
  };
});
afterEach(async () => {
  await close();
  await world.end();
});

/** A run that should have begun a minute ago. */
const addOverdue = () =>
  queues.get("sleepy").add("sleepy", { house: "alpha" }, { timestamp: Date.now() - 60_000, delay: 1 });
const waiting = async () => (await queues.get("sleepy").getWaiting()).map(({ name }) => name);

describe("a queue whose runs are not taken", () => {
  it("though they are overdue is woken at the second check, and its worker restarts at the fourth", async () => {
    const fatal: Error[] = [];
    const watch = createOverdueWatch({ queues, log: world.log, onFatal: (error) => fatal.push(error) });
    await consumer.pause(); // simulates a worker that never finishes
    await addOverdue();
    await watch(consumer);
    expect(await waiting()).not.toContain(WAKE);
    await watch(consumer);
    expect(await waiting()).toContain(WAKE);
    await watch(consumer);
    expect(consumer.isTaking()).toBe(false);
    await watch(consumer);
    expect(consumer.isTaking()).toBe(true);
    await eventually(() => runs === 1);
    await eventually(async () => (await waiting()).length === 0);
    expect(fatal).toEqual([]);
  });

  it("though they wait for nothing as well, if its worker believes that it takes them", async () => {
    const watch = createOverdueWatch({ queues, log: world.log, onFatal: () => undefined });
    await consumer.pause(); // simulates a read without a response
    await queues.get("sleepy").add("sleepy", { house: "alpha" });
    const deaf = { ...consumer, isTaking: () => true };
    for (let look = 0; look < 3; look++) await watch(deaf);
    expect(await waiting()).toContain(WAKE);
    expect(runs).toBe(0);
    await watch(deaf);
    await eventually(() => runs === 1);
  });

  it("for which a restart does not help is reported as fatal", async () => {
    const fatal: Error[] = [];
    const watch = createOverdueWatch({ queues, log: world.log, onFatal: (error) => fatal.push(error) });
    for (let look = 0; look < 16; look++) {
      await consumer.pause();
      await watch(consumer);
    }
    expect(fatal).toMatchObject([{ message: expect.stringContaining("it must start again") }]);
  });

  it("by one of its workers, while another has a run, gets another for that one", async () => {
    const opened = vi.spyOn(Worker.prototype, "run");
    const { consumer: many, runner } = start(wide);
    const watch = createOverdueWatch({ queues, log: world.log, onFatal: () => undefined });
    const workers = opened.mock.contexts.length;
    expect(workers).toBeGreaterThan(1);
    await (opened.mock.contexts[0] as Worker).pause(true); // simulates one whose loop ended
    await queues.get("wide").add("wide", { house: "alpha" });
    await eventually(() => runner.active() === 1);
    for (let look = 0; look < 4; look++) await watch(many);
    expect(many.isTaking()).toBe(true);
    expect(opened.mock.contexts).toHaveLength(workers + 1);
    expect(runner.active()).toBe(1);
    door.open();
    await eventually(() => runner.active() === 0);
    expect(await queues.get("wide").getFailedCount()).toBe(0);
    opened.mockRestore();
  });

  it("because an operator paused it is let be", async () => {
    const watch = createOverdueWatch({ queues, log: world.log, onFatal: () => undefined });
    await queues.get("sleepy").pause();
    await addOverdue();
    for (let look = 0; look < 5; look++) await watch(consumer);
    expect(world.lines.filter(({ msg }) => msg.includes("are not taken"))).toEqual([]);
  });
});
