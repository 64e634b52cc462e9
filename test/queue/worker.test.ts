import { spawn } from "node:child_process";
import { once } from "node:events";
import { hostname } from "node:os";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { UsageError } from "../../src/errors.ts";
import { listFailed } from "../../src/queue/runs/inspect.ts";
import { eventually } from "../support/eventually.ts";
import { createWorld, gate, makeJob, type World } from "./world.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.end());

const done = () => world.lines.filter(({ msg }) => msg === "done");

describe("a worker process", () => {
  it("works on the queues it is given, and reports itself while it lives", async () => {
    const [one, other] = [makeJob({ name: "one" }), makeJob({ name: "other" })];
    const workers = await world.start([one, other], { queues: ["one"], version: "1.2.3" });
    const queues = await world.open([one, other]);
    await queues.enqueue(one, { house: "alpha" });
    await queues.enqueue(other, { house: "alpha" });
    await eventually(() => done().length === 1 && workers.health().leading);
    expect(workers.health()).toEqual({
      redis: true,
      taking: true,
      leading: true,
      clockProblem: null,
      queues: [{ queue: "one", active: 0, taking: true, unfinishedMs: 0 }],
    });
    expect(await world.sql`select pid, version, queues, clock_problem from workers`).toMatchObject([
      { pid: process.pid, version: "1.2.3", queues: ["one"], clock_problem: null },
    ]);
    await workers.stop(1_000);
    // on a slow machine it stops before the database confirms
    await eventually(async () => (await world.sql`select from workers`).length === 0);
    expect(await queues.get("other").getWaitingCount()).toBe(1);
  });

  it("for an unknown queue does not start", async () => {
    await expect(world.start([makeJob({ name: "one" })], { queues: ["one", "two"] })).rejects.toThrow(
      new UsageError("there is no queue two; the queues are one"),
    );
  });

  it("hands work over to the next job", async () => {
    const next = makeJob({ name: "next" });
    const first = makeJob({
      name: "first",
      async run(payload, { enqueue }) {
        await enqueue(next, payload);
        return {};
      },
    });
    await world.start([first, next]);
    await (await world.open([first, next])).enqueue(first, { house: "alpha" });
    await eventually(() => done().length === 2);
    expect(done().find((line) => line["queue"] === "next")).toMatchObject({ key: "alpha" });
  });
});

describe("a worker that stops", () => {
  it("hands the leadership over immediately", async () => {
    const workers = await world.start([]);
    await eventually(() => workers.health().leading);
    const [held] = await world.sql<{ expiresAt: string }[]>`select expires_at::text as "expiresAt" from leases`;
    await workers.stop(1_000);
    // on a slow machine it stops before the database confirms
    const freed = await eventually(async () => {
      const leases = await world.sql`select from leases where expires_at < ${held?.expiresAt ?? ""}::timestamptz`;
      return leases.length > 0 && leases;
    });
    expect(freed).toHaveLength(1);
  });

  it("waits for what runs, and takes nothing new", async () => {
    const held = gate();
    const job = makeJob({
      name: "long",
      concurrency: 1,
      async run() {
        await held.passed;
        return { done: 1 };
      },
    });
    const queues = await world.open([job]);
    const workers = await world.start([job]);
    await queues.enqueue(job, { house: "alpha" });
    await eventually(() => workers.health().queues[0]?.active === 1);
    const stopped = workers.stop(20_000);
    await queues.enqueue(job, { house: "beta" });
    held.open();
    await stopped;
    expect(done()).toMatchObject([{ key: "alpha" }]);
    expect(await queues.get("long").getWaitingCount()).toBe(1);
  });

  it("aborts what does not end in time, and another worker runs it as if for the first time", async () => {
    let isLast = false;
    const job = makeJob({
      name: "long",
      retry: { attempts: 1, firstMs: 1, maxMs: 1 },
      async run(_, { signal }) {
        if (isLast) return { done: 1 };
        return new Promise((_resolve, reject) => signal.addEventListener("abort", reject));
      },
    });
    const queues = await world.open([job]);
    const workers = await world.start([job]);
    await queues.enqueue(job, { house: "alpha" });
    await eventually(() => workers.health().queues[0]?.active === 1);
    await workers.stop(50);
    expect(await queues.get("long").getWaitingCount()).toBe(1);
    expect(await listFailed(queues, { limit: 1 })).toEqual([]);
    isLast = true;
    await world.start([job]);
    const [line] = await eventually(() => done().length > 0 && done());
    expect(line).toMatchObject({ key: "alpha", attempt: 1 });
  });
});

describe("a worker whose clock is wrong", () => {
  it("does not start", async () => {
    await expect(world.start([], { now: () => Date.now() + 60_000 })).rejects.toThrow(
      /the clock of this machine is \d+ ms ahead of PostgreSQL's and \d+ ms ahead of Redis's/,
    );
  });

  it("takes no work and does not lead until it is right again, and an alert is raised", async () => {
    let skew = 0;
    const skews: number[] = [];
    const job = makeJob({
      name: "punctual",
      async run() {
        skews.push(skew);
        return { done: 1 };
      },
    });
    const alerts = () =>
      world.sql`select closed_at is null as open from alerts where kind = 'clock_skew' and subject = ${hostname()}`;
    const workers = await world.start([job], { now: () => Date.now() + skew, clockCheckMs: 50 });
    const queues = await world.open([job]);
    await eventually(() => workers.health().leading);

    skew = -60_000;
    await eventually(() => !workers.health().taking && !workers.health().leading);
    await eventually(async () => (await alerts()).some((alert) => alert["open"] === true));
    expect(workers.health().clockProblem).toMatch(/behind PostgreSQL's/);
    for (const house of ["alpha", "beta", "gamma"]) await queues.enqueue(job, { house });
    await world.sql`delete from heartbeats`;

    skew = 0;
    await eventually(() => skews.length === 3 && workers.health().leading);
    expect(skews).toEqual([0, 0, 0]);
    await eventually(async () => (await alerts()).every((alert) => alert["open"] === false));
  });
});

/** A worker process with a job of worker-child.ts; gives what it has printed so far, line by line. */
function startChild(name: "doomed" | "tick") {
  const script = new URL("./worker-child.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, [script, world.databaseUrl, world.redisUrl, name], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return { kill: (signal: NodeJS.Signals) => child.kill(signal), ended, lines: () => output.split("\n").slice(0, -1) };
}

describe("a worker that is killed", () => {
  // its lock has to expire, and the stalled check runs twice: about 15 s
  it("in the middle of a run leaves it to another", async () => {
    const job = makeJob({ name: "doomed", timeoutMs: 60_000, run: async () => ({ done: 1 }) });
    const queues = await world.open([job]);
    const child = startChild("doomed");
    await queues.enqueue(job, { house: "alpha" });
    await eventually(() => child.lines().includes("running"), { timeoutMs: 60_000 });
    child.kill("SIGKILL");
    await child.ended;
    await world.start([job]);
    const [line] = await eventually(() => done().length > 0 && done(), { timeoutMs: 60_000 });
    expect(line).toMatchObject({ queue: "doomed", key: "alpha", attempt: 1 });
  });
});

describe("a leader that is stopped by SIGSTOP", () => {
  const epoch = async () => {
    const [lease] = await world.sql<{ epoch: bigint }[]>`select epoch from leases where name = 'reconcile'`;
    return lease?.epoch ?? 0n;
  };

  it("is replaced when its lease expires, and steps back when it continues", { timeout: 180_000 }, async () => {
    let runs = 0;
    const job = makeJob({
      name: "tick",
      retry: { attempts: 1, firstMs: 0, maxMs: 0 },
      schedule: async () => [{ payload: { house: "alpha" }, everyMs: 100, offsetMs: 30 }],
      run: async () => ({ runs: ++runs }),
    });
    const child = startChild("tick");
    await eventually(() => child.lines().at(-1) === "leads", { timeoutMs: 60_000 });
    const workers = await world.start([job]);
    const first = await epoch();

    child.kill("SIGSTOP");
    await (await world.open([job])).redis.flushdb();
    const before = runs;
    await eventually(() => workers.health().leading && runs > before + 2, { timeoutMs: 60_000 });
    expect(await epoch()).toBeGreaterThan(first);

    child.kill("SIGCONT");
    await eventually(() => child.lines().at(-1) === "does not lead");
    expect(workers.health().leading).toBe(true);
  });
});
