import { getEventListeners } from "node:events";
import type { Job as QueuedRun } from "bullmq";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { PermanentError, ThrottledError } from "../../src/errors.ts";
import { listFailed } from "../../src/queue/runs/inspect.ts";
import type { Job } from "../../src/queue/job.ts";
import * as failure from "../../src/queue/runs/failure.ts";
import { createRunner } from "../../src/queue/runs/run.ts";
import { testContext } from "../support/context.ts";
import { eventually } from "../support/eventually.ts";
import { listExamples, runExample } from "../support/examples.ts";
import type { Workers } from "../../src/queue/worker.ts";
import { createWorld, gate, LEVEL, makeJob, type Task, type World } from "./world.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.end());

const done = (queue: string) => world.lines.filter((line) => line["queue"] === queue && line.msg === "done");

/** Lets the next timer of so many milliseconds end after one. */
function shortenTimer(ms: number): void {
  const { setTimeout } = globalThis;
  const spy = vi.spyOn(globalThis, "setTimeout").mockImplementation(((end: () => void, of: number, ...given: []) => {
    if (of !== ms) return setTimeout(end, of, ...given);
    spy.mockRestore();
    return setTimeout(end, 1);
  }) as typeof setTimeout);
  onTestFinished(() => spy.mockRestore());
}

describe("a run", () => {
  it("gets its payload, and its counts become one log line", async () => {
    const seen: Task[] = [];
    const job = makeJob({
      name: "greet",
      async run(payload) {
        seen.push(payload);
        return { rounds: 3, late: 0 };
      },
    });
    await world.start([job]);
    const queues = await world.open([job]);
    await queues.enqueue(job, { house: "alpha" });
    const [line] = await eventually(() => done("greet").length > 0 && done("greet"));
    expect(seen).toEqual([{ house: "alpha" }]);
    expect(line).toMatchObject({ level: LEVEL.info, key: "alpha", attempt: 1, counts: { rounds: 3, late: 0 } });
    expect(line?.["ms"]).toBeTypeOf("number");
  });

  it("that did nothing is logged at debug level only", async () => {
    const job = makeJob({ name: "idle", run: async () => ({ rounds: 0, requests: 1, unchanged: 1, skipped: 1 }) });
    await world.start([job]);
    await (await world.open([job])).enqueue(job, { house: "alpha" });
    const [line] = await eventually(() => done("idle").length > 0 && done("idle"));
    expect(line?.level).toBe(LEVEL.debug);
  });

  it("requested again and again while it runs happens once more, with the newest payload", async () => {
    const first = gate();
    const seen: (string | undefined)[] = [];
    const job = makeJob({
      name: "again",
      async run({ note }) {
        seen.push(note);
        if (seen.length === 1) await first.passed;
        return { done: 1 };
      },
    });
    const queues = await world.open([job]);
    await world.start([job]);
    await queues.enqueue(job, { house: "alpha", note: "first" });
    await eventually(() => seen.length === 1);
    for (const note of ["second", "third", "fourth"]) await queues.enqueue(job, { house: "alpha", note });
    await queues.enqueue(job, { house: "beta", note: "other" });
    await eventually(() => seen.includes("other"));
    first.open();
    await eventually(() => done("again").length === 3);
    expect(seen).toEqual(["first", "other", "fourth"]);
  });

  it("asked for twice before it began happens once", async () => {
    const job = makeJob({ name: "once", run: async () => ({ done: 1 }) });
    const queues = await world.open([job]);
    for (const note of ["first", "second"]) await queues.enqueue(job, { house: "alpha", note });
    expect(await queues.get("once").getWaitingCount()).toBe(1);
  });

  it("leaves no listener on its signal, which would be kept permanently with all its references", async () => {
    const signals: AbortSignal[] = [];
    const job = makeJob({
      name: "forgotten",
      async run({ note }, { signal }) {
        signals.push(signal);
        if (note === "fails") throw new PermanentError("it can never succeed");
        return { done: 1 };
      },
    });
    const queues = await world.open([job]);
    await world.start([job]);
    await queues.enqueue(job, { house: "alpha" });
    await queues.enqueue(job, { house: "beta", note: "fails" });
    await eventually(async () => signals.length === 2 && (await listFailed(queues, { limit: 10 })).length === 1);
    await eventually(() => done("forgotten").length === 1);
    expect(signals.map((signal) => getEventListeners(signal, "abort").length)).toEqual([0, 0]);
  });

  it("that throws is tried again, until it works", async () => {
    let runs = 0;
    const job = makeJob({
      name: "flaky",
      async run() {
        runs++;
        if (runs < 3) throw new Error("not yet");
        return { done: 1 };
      },
    });
    await world.start([job]);
    await (await world.open([job])).enqueue(job, { house: "alpha" });
    const [line] = await eventually(() => done("flaky").length > 0 && done("flaky"));
    expect(line?.["attempt"]).toBe(3);
  });

  it("that always throws fails after its attempts and stays listed with its reason", async () => {
    let runs = 0;
    const job = makeJob({
      name: "broken",
      async run() {
        runs++;
        throw new Error("the house is on fire", { cause: new Error("someone smoked") });
      },
    });
    const queues = await world.open([job]);
    await world.start([job]);
    await queues.enqueue(job, { house: "alpha" });
    const [failed] = await eventually(async () => {
      const found = await listFailed(queues, { limit: 10 });
      return found.length > 0 && found;
    });
    expect(runs).toBe(3);
    expect(failed).toMatchObject({
      queue: "broken",
      payload: { house: "alpha" },
      reason: "the house is on fire: someone smoked",
      attempts: 3,
    });
    expect(world.lines.filter(({ level }) => level === LEVEL.error)).toMatchObject([
      { queue: "broken", key: "alpha", attempt: 3, msg: expect.stringContaining("last attempt") },
    ]);
  });

  it("that can never succeed fails immediately", async () => {
    let runs = 0;
    const job = makeJob({
      name: "hopeless",
      async run() {
        runs++;
        throw new PermanentError("there is no such house");
      },
    });
    const queues = await world.open([job]);
    await world.start([job]);
    await queues.enqueue(job, { house: "alpha" });
    const failed = await eventually(async () => {
      const found = await listFailed(queues, { limit: 10 });
      return found.length > 0 && found;
    });
    expect(failed).toMatchObject([{ reason: "there is no such house", attempts: 1 }]);
    expect(runs).toBe(1);
  });

  it("that is throttled waits and spends no attempt", async () => {
    let runs = 0;
    const job = makeJob({
      name: "patient",
      retry: { attempts: 1, firstMs: 1, maxMs: 1 },
      async run() {
        runs++;
        if (runs < 4) throw new ThrottledError("the house asked us to wait", 20);
        return { done: 1 };
      },
    });
    await world.start([job]);
    await (await world.open([job])).enqueue(job, { house: "alpha" });
    const [line] = await eventually(() => done("patient").length > 0 && done("patient"));
    expect(line?.["attempt"]).toBe(1);
    expect(runs).toBe(4);
  });

  it("that lost its database connection spends no attempt", async () => {
    let runs = 0;
    const job = makeJob({
      name: "cut-off",
      retry: { attempts: 1, firstMs: 1, maxMs: 1 },
      async run(_, { sql }) {
        runs++;
        if (runs === 1) await sql`select pg_terminate_backend(pg_backend_pid())`;
        return { done: 1 };
      },
    });
    await world.start([job]);
    await (await world.open([job])).enqueue(job, { house: "alpha" });
    const [line] = await eventually(() => done("cut-off").length > 0 && done("cut-off"));
    expect(line?.["attempt"]).toBe(1);
    expect(runs).toBe(2);
  });

  it("with a payload that is not valid fails permanently with the reason", async () => {
    const job = makeJob({ name: "strict" });
    const queues = await world.open([job]);
    await world.start([job]);
    await queues.get("strict").add("strict", { house: 7 }, { attempts: 3 });
    const [failed] = await eventually(async () => {
      const found = await listFailed(queues, { queue: "strict", limit: 10 });
      return found.length > 0 && found;
    });
    expect(failed?.reason).toMatch(/^the payload is not valid: house: .*expected string/);
    expect(failed?.attempts).toBe(1);
  });

  it("is not even asked for with a payload that is not valid", async () => {
    const job = makeJob({ name: "strict" });
    const queues = await world.open([job]);
    const looser: Job<unknown> = job;
    await expect(queues.enqueue(looser, { house: 7 })).rejects.toThrow(/a payload for strict is not valid: house: /);
  });
});

describe("a run that hangs", () => {
  it("shows in its worker's health until a run is done, also if it failed meanwhile", async () => {
    const first = gate();
    let runs = 0;
    const job = makeJob({
      name: "slow",
      retry: { attempts: 1, firstMs: 0, maxMs: 0 },
      async run() {
        runs += 1;
        if (runs > 1) return {};
        await first.passed;
        throw new Error("no good");
      },
    });
    const workers = await world.start([job]);
    const queues = await world.open([job]);
    const unfinishedMs = () => workers.health().queues[0]?.unfinishedMs ?? 0;
    expect(unfinishedMs()).toBe(0);
    await queues.enqueue(job, { house: "alpha" });
    await eventually(() => unfinishedMs() > 10);
    first.open();
    await eventually(async () => (await listFailed(queues, { limit: 10 })).length === 1);
    expect(unfinishedMs()).toBeGreaterThan(10);
    await queues.enqueue(job, { house: "beta" });
    await eventually(() => unfinishedMs() === 0);
  });

  it("is aborted when its time is up, and the queue continues", async () => {
    const job = makeJob({
      name: "slow",
      concurrency: 1,
      timeoutMs: 100,
      retry: { attempts: 1, firstMs: 1, maxMs: 1 },
      async run({ house }, { signal }) {
        if (house === "alpha") await new Promise((_, reject) => signal.addEventListener("abort", reject));
        return { done: 1 };
      },
    });
    const queues = await world.open([job]);
    await world.start([job]);
    await queues.enqueue(job, { house: "alpha" });
    await queues.enqueue(job, { house: "beta" });
    await eventually(() => done("slow").some((line) => line["key"] === "beta"));
    expect(await listFailed(queues, { limit: 10 })).toMatchObject([
      { payload: { house: "alpha" }, reason: "took longer than 100 ms" },
    ]);
  });

  it("and ignores its signal ends as failed all the same, and no other run of its key begins next to it", async () => {
    const held = gate();
    const going: string[] = [];
    const job = makeJob({
      name: "deaf",
      timeoutMs: 61_234, // as long, its key stays busy after it failed; no other timer has this time
      retry: { attempts: 1, firstMs: 1, maxMs: 1 },
      async run({ note = "" }) {
        going.push(`${note} began`);
        if (note === "first") await held.passed;
        going.push(`${note} ended`);
        return { done: 1 };
      },
    });
    const queues = await world.open([job]);
    await world.start([job]);
    shortenTimer(job.timeoutMs);
    await queues.enqueue(job, { house: "alpha", note: "first" });
    await eventually(async () => (await listFailed(queues, { limit: 10 })).length === 1);
    await queues.enqueue(job, { house: "alpha", note: "second" });
    await eventually(() => world.lines.some(({ msg }) => msg.startsWith("skipped: a run of this key")));
    held.open();
    await eventually(() => done("deaf").length === 1);
    expect(going).toEqual(["first began", "first ended", "second began", "second ended"]);
    expect(world.lines.some(({ msg }) => msg.includes("ignores that it was aborted"))).toBe(true);
    expect(world.lines.some(({ msg }) => msg.includes("the abandoned run has ended"))).toBe(true);
  });
});

describe("a run that lasts until the next tick", () => {
  let skewMs = 0;
  const lasting = (work: () => Promise<void>, endsAt: () => number = () => 0) =>
    makeJob({
      name: "lasting",
      lasts: endsAt,
      retry: { attempts: 1, firstMs: 0, maxMs: 0 },
      run: async () => {
        await work();
        return { done: 1 };
      },
    });

  /** A runner of the job, with a function that delivers a tick. */
  function runnerOf(job: Job<Task>) {
    const { context, enqueued } = testContext(world.sql);
    const runner = createRunner({ job, context, log: world.log, stop: new AbortController().signal });
    const tick = async (note: string) => {
      const data = { house: "alpha", note };
      const queued = { name: "lasting", data, attemptsMade: 0, repeatJobKey: "a", stalledCounter: 0 };
      await runner.process(queued as QueuedRun, undefined, { signal: undefined, ending: context.ending });
    };
    return { tick, enqueued };
  }

  it.each([
    ["succeeds", () => Promise.resolve()],
    ["fails", () => Promise.reject(new Error("no database"))],
  ])("queues the tick that arrived before it had ended, but not its own, when it %s", async (_, end) => {
    const held = gate();
    let endsAt = 1;
    const { tick, enqueued } = runnerOf(
      lasting(
        () => held.passed.then(end),
        () => endsAt,
      ),
    );
    const first = tick("first").catch(() => undefined);
    await tick("its own");
    endsAt = 2;
    await tick("next");
    expect(enqueued).toEqual([]);
    held.open();
    await first;
    expect(enqueued).toEqual(['lasting {"house":"alpha","note":"next"}']);
    await tick("alone").catch(() => undefined);
    expect(enqueued).toHaveLength(1);
  });

  it("is logged once per minute and without a stack when it fails because PostgreSQL is away", async () => {
    const { tick } = runnerOf(
      lasting(() => Promise.reject(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }))),
    );
    await expect(tick("first")).rejects.toThrow("refused");
    await expect(tick("second")).rejects.toThrow("refused");
    const lines = world.lines.filter(({ msg }) => msg === "failed, and the next tick tries again: refused");
    expect(lines.map(({ level, err }) => [level, err])).toEqual([
      [LEVEL.warn, undefined],
      [LEVEL.debug, undefined],
    ]);
  });

  it("is not kept when it fails, nor logged as the last attempt", async () => {
    const job = lasting(() => Promise.reject(new Error("no database")));
    const queues = await world.open([job]);
    await world.start([job]);
    await queues.enqueue(job, { house: "alpha" });
    await eventually(() => world.lines.some(({ msg }) => msg === "failed, and the next tick tries again: no database"));
    const kept = async () => queues.get("lasting").getJobCountByTypes();
    await eventually(async () => (await kept()) === 0);
    expect(await kept()).toBe(0);
  });

  it.each([
    ["is closed", (workers: Workers) => workers.stop(5_000)],
    ["has a wrong clock", () => void (skewMs = 60_000)],
  ])("ends early when its process %s", async (_, stop) => {
    skewMs = 0;
    const began = gate();
    const job = makeJob({
      name: "lasting",
      lasts: () => 0,
      async run(_payload, { ending }) {
        began.open();
        await new Promise((resolve) => ending.addEventListener("abort", resolve));
        return { done: 1 };
      },
    });
    const queues = await world.open([job]);
    const workers = await world.start([job], { now: () => Date.now() + skewMs, clockCheckMs: 50 });
    await queues.enqueue(job, { house: "alpha" });
    await began.passed;
    await stop(workers);
    await eventually(() => done("lasting").length > 0);
    expect(done("lasting")).toHaveLength(1);
  });

  it("does not end early when the clock of its process is right again", async () => {
    skewMs = 0;
    const seen: boolean[] = [];
    const job = makeJob({
      name: "lasting",
      lasts: () => 0,
      async run(_, { ending }) {
        seen.push(ending.aborted);
        return { done: 1 };
      },
    });
    const queues = await world.open([job]);
    await world.start([job], { now: () => Date.now() + skewMs, clockCheckMs: 50 });
    skewMs = 60_000;
    await eventually(() => world.lines.some(({ msg }) => msg.startsWith("no more work is taken")));
    skewMs = 0;
    await queues.enqueue(job, { house: "alpha" });
    await eventually(() => seen.length === 1);
    expect(seen).toEqual([false]);
  });

  it("continues when Redis lost it", async () => {
    const [began, held] = [gate(), gate()];
    const ended: boolean[] = [];
    const job = makeJob({
      name: "lasting",
      lasts: () => 0,
      timeoutMs: 60_000,
      async run(_, { signal }) {
        began.open();
        await held.passed;
        ended.push(signal.aborted);
        return { done: 1 };
      },
    });
    const queues = await world.open([job]);
    await world.start([job]);
    await queues.enqueue(job, { house: "alpha" });
    await began.passed;
    await queues.redis.flushdb();
    await eventually(() => world.lines.some(({ msg }) => /lock/i.test(msg)));
    held.open();
    await eventually(() => ended.length === 1);
    expect(ended).toEqual([false]);
  });

  it("that is queued while another of its key is active is dropped", async () => {
    const held = gate();
    let runs = 0;
    const job = lasting(async () => {
      runs += 1;
      await held.passed;
    });
    const queues = await world.open([job]);
    await world.start([job]);
    await queues.enqueue(job, { house: "alpha" });
    await eventually(() => runs === 1);
    await queues.get("lasting").add("lasting", { house: "alpha" });
    await eventually(() => world.lines.some(({ msg }) => msg.startsWith("skipped: a run of this key")));
    held.open();
    await eventually(() => done("lasting").length === 1);
    expect(await queues.get("lasting").getDelayedCount()).toBe(0);
    expect(runs).toBe(1);
  });
});

describe("the examples", () => {
  const path = new URL("../../src/queue/runs/failure.ts", import.meta.url).pathname;
  it.each(listExamples(path))("of $title hold", (example) => {
    for (const { actual, expected } of runExample(example, failure)) expect(actual).toEqual(expected);
  });
});
