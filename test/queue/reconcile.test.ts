import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadSettings } from "../../src/config/environment.ts";
import type { Sql } from "../../src/db/client.ts";
import { createLease } from "../../src/db/lease.ts";
import { pauseQueue, resumeQueue } from "../../src/queue/runs/inspect.ts";
import type { Job } from "../../src/queue/job.ts";
import { createPeriodicTasks, type PeriodicTask } from "../../src/queue/schedules/periodic.ts";
import { createReconciler, type Reconciler } from "../../src/queue/schedules/reconcile.ts";
import { restorePauses } from "../../src/queue/schedules/reconcile-steps.ts";
import { findHeartbeat, RECONCILER, saveHeartbeat } from "../../src/queue/store.ts";
import { eventually } from "../support/eventually.ts";
import { createWorld, gate, LEVEL, makeJob, type World } from "./world.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.end());

/** A periodic task that is due at every tick. */
function taskOf(name: string, work: (sql: Sql) => Promise<unknown>, timeoutSeconds = 5): PeriodicTask {
  return { name, purpose: "for a test", intervalSeconds: 0, timeoutSeconds, run: (context) => work(context.sql) };
}

/** A reconciler of a process called `id` whose ticks the test makes. */
async function reconciler(
  jobs: Job<unknown>[],
  works: ((sql: Sql) => Promise<unknown>)[] = [],
  { id = "test", leaseMs = 10_000 } = {},
): Promise<Reconciler> {
  const queues = await world.open(jobs);
  const { sql, log } = world;
  const lease = createLease(sql, { name: RECONCILER, holder: id, leaseMs });
  const settings = loadSettings({});
  const tasks = works.map((work, at) => taskOf(`task ${at + 1}`, work));
  const periodic = createPeriodicTasks(() => tasks, { sql, settings, log, published: () => undefined });
  return createReconciler({ id, queues, sql, settings, lease, periodic, log });
}

const alerts = (kind: string) => world.sql<{ text: string; open: boolean }[]>`
  select text, closed_at is null as open
  from alerts
  where kind = ${kind}
  order by opened_at`;

const scheduled = makeJob({
  name: "tick",
  retry: { attempts: 1, firstMs: 0, maxMs: 0 },
  schedule: async () => [{ payload: { house: "alpha" }, everyMs: 100, offsetMs: 30 }],
});

describe("after Redis lost everything", () => {
  it("schedules are restored by themselves, and the alert opens and closes", async () => {
    let runs = 0;
    const job = { ...scheduled, run: async () => ({ runs: ++runs }) };
    await world.start([job]);
    const queues = await world.open([job]);
    await eventually(async () => {
      const [beat] = await world.sql`select from heartbeats where detail ->> 'redisMark' is not null`;
      return runs > 1 && beat !== undefined;
    });
    expect(await alerts("redis_lost")).toEqual([]);

    await queues.redis.flushdb();
    const before = runs;
    await eventually(() => runs > before + 2);
    await eventually(async () => (await alerts("redis_lost")).some(({ open }) => !open));
    expect(await alerts("redis_lost")).toHaveLength(1);
    expect(world.lines.filter((line) => line["alert"] === "redis_lost")).toMatchObject([
      { level: LEVEL.error, msg: expect.stringContaining("Redis lost its data") },
      { level: LEVEL.info, msg: expect.stringContaining("recovered") },
    ]);
  });

  it("a paused queue stays paused, until it is resumed", async () => {
    const job = makeJob({ name: "resting", run: async () => ({ done: 1 }) });
    const queues = await world.open([job]);
    await pauseQueue(world.sql, queues, { queue: "resting", by: "ann", reason: "the house asked for quiet" });
    await world.start([job]);
    await queues.redis.flushdb();
    await eventually(() => queues.get("resting").isPaused());
    await queues.enqueue(job, { house: "alpha" });
    await eventually(() => world.lines.some(({ msg }) => msg === "paused, as in PostgreSQL"));
    expect(world.lines.filter(({ msg }) => msg === "done")).toEqual([]);
    await resumeQueue(world.sql, queues, { queue: "resting" });
    await eventually(() => world.lines.some(({ msg }) => msg === "done"));
  });

  it("a pause that staff made while the reconciler read the queues is kept", async () => {
    const queues = await world.open([makeJob({ name: "resting" })]);
    const queue = queues.get("resting");
    const isPaused = async () => {
      await pauseQueue(world.sql, queues, { queue: "resting", by: "ann", reason: "the house asked for quiet" });
      return queue.isPaused();
    };
    const slow = { ...queues, get: () => Object.assign(Object.create(queue) as typeof queue, { isPaused }) };
    const { sql, log } = world;
    await restorePauses({ sql, log, settings: loadSettings({}), queues: slow });
    expect(await queue.isPaused()).toBe(true);
  });

  it("a pause with an end is over by itself, and the audit log has an entry", async () => {
    const job = makeJob({ name: "napping", run: async () => ({ done: 1 }) });
    const queues = await world.open([job]);
    const until = new Date(Date.now() + 3_600_000).toISOString();
    await pauseQueue(world.sql, queues, { queue: "napping", by: "ann", reason: "an hour of quiet", until });
    const one = await reconciler([job]);
    await one.tick(true);
    expect(await queues.get("napping").isPaused()).toBe(true);
    await world.sql`
      update queue_controls
      set paused_at = now() - interval '2 hours', until = now() - interval '1 second'`;
    await one.tick(true);
    expect(await queues.get("napping").isPaused()).toBe(false);
    const entries = await world.sql`select surface, actor, action, target, before ->> 'reason' as was from audit_log`;
    expect([...entries]).toEqual([
      {
        surface: "system",
        actor: "reconciler",
        action: "queue.resume",
        target: "queue napping",
        was: "an hour of quiet",
      },
    ]);
  });

  it("events stay bounded", async () => {
    const job = makeJob({ name: "bounded" });
    const one = await reconciler([job]);
    await one.tick(true);
    const queues = await world.open([job]);
    await queues.get("bounded").getVersion(); // by then it has written its settings
    await queues.redis.flushdb();
    await one.tick(true);
    expect((await queues.get("bounded").getMeta()).maxLenEvents).toBe(1_000);
  });

  it("work that was only in Redis is found again by its sweep", async () => {
    const undone = new Set(["alpha", "beta"]);
    const job = makeJob({
      name: "sweeping",
      sweep: async () => [...undone].map((house) => ({ house })),
      async run({ house }) {
        undone.delete(house);
        return { done: 1 };
      },
    });
    const one = await reconciler([job]);
    const queues = await world.open([job]);
    await one.tick(true);
    await one.tick(true);
    expect(await queues.get("sweeping").getWaitingCount()).toBe(2);
    await queues.redis.flushdb();
    await world.start([job]);
    await one.tick(false);
    await eventually(() => undone.size === 0);
  });
});

describe("a leader", () => {
  it("is one of two, and the other takes over when its lease expires", async () => {
    const first = await reconciler([scheduled], [], { id: "first" });
    const second = await reconciler([scheduled], [], { id: "second" });
    expect(await first.tick(true)).toBe(Infinity);
    const expiresInMs = await second.tick(true);
    expect(expiresInMs).toBeGreaterThan(0);
    expect(expiresInMs).toBeLessThan(11_000);
    await world.sql`update leases set expires_at = clock_timestamp()`;
    expect(await second.tick(true)).toBe(Infinity);
    await eventually(async () => (await first.tick(true)) < Infinity);
    expect([first.isLeading(), second.isLeading()]).toEqual([false, true]);
  });

  it("that hangs in a part of its tick loses the lease, and starts no other part", async () => {
    const [reached, hung] = [gate(), gate()];
    const hooks: string[] = [];
    const first = await reconciler(
      [scheduled],
      [
        async () => {
          hooks.push("first");
          reached.open();
          await hung.passed;
        },
        async () => {
          hooks.push("not reached");
        },
      ],
      { id: "first", leaseMs: 2_000 },
    );
    const second = await reconciler([scheduled], [], { id: "second" });
    let tick: Promise<unknown> = Promise.resolve();
    // a tick skips the part if a busy machine loses the lease before it
    await eventually(async () => {
      tick = first.tick(true);
      await Promise.race([tick, reached.passed]);
      return hooks.length === 1;
    });
    await eventually(async () => (await second.tick(true)) === Infinity);
    expect([first.isLeading(), second.isLeading()]).toEqual([false, true]);
    hung.open();
    await tick;
    expect(hooks).toEqual(["first"]);
    expect(await world.sql`select detail ->> 'leader' as leader from heartbeats`).toEqual([{ leader: "second" }]);
  });

  it("of an earlier epoch leaves no heartbeat", async () => {
    await (await reconciler([scheduled])).tick(true);
    await world.sql`update leases set epoch = 2`;
    await saveHeartbeat(world.sql, { leader: "stale", redisMark: "stale", failures: {}, tasks: [] }, 1n);
    expect(await findHeartbeat(world.sql)).toMatchObject({ leader: "test" });
    await saveHeartbeat(world.sql, { leader: "newer", redisMark: null, failures: {}, tasks: [] }, 2n);
    expect(await findHeartbeat(world.sql)).toMatchObject({ leader: "newer" });
  });

  it("steps back when its clock is wrong", async () => {
    const first = await reconciler([scheduled], [], { id: "first" });
    const second = await reconciler([scheduled], [], { id: "second" });
    await first.tick(true);
    await first.tick(false);
    await second.tick(true);
    expect([first.isLeading(), second.isLeading()]).toEqual([false, true]);
  });

  it("has reported before its periodic tasks, however long they take", async () => {
    const seen: (string | undefined)[] = [];
    const one = await reconciler([scheduled], [async (sql) => seen.push((await findHeartbeat(sql))?.leader)]);
    await one.tick(true);
    expect(seen).toEqual(["test"]);
  });

  it("does not let one failing part stop the others, and logs it once", async () => {
    const broken = makeJob({
      name: "broken",
      schedule: () => Promise.reject(new Error("no such column")),
      sweep: () => Promise.reject(new Error("no such table")),
    });
    const well = { ...scheduled, name: "well", sweep: async () => [{ house: "beta" }] };
    const hooks: string[] = [];
    const one = await reconciler(
      [broken, well],
      [
        () => Promise.reject(new Error("no such house")),
        async (sql) => {
          hooks.push(`${(await sql`select 1`).length} row`);
        },
      ],
    );
    await one.tick(true);
    await one.tick(true);
    const queues = await world.open([well]);
    expect(await queues.get("well").getJobSchedulersCount()).toBe(1);
    expect((await queues.get("well").getJobs()).map(({ data }) => data as unknown)).toContainEqual({ house: "beta" });
    expect(hooks).toEqual(["1 row", "1 row"]);
    const warnings = world.lines.filter(({ level }) => level === LEVEL.warn).map(({ msg }) => msg);
    expect(warnings).toEqual([
      "schedules of broken failed: no such column",
      "sweep of broken failed: no such table",
      "task 1 failed: no such house",
    ]);
    const [beat] = await world.sql<{ failures: object }[]>`select detail -> 'failures' as failures from heartbeats`;
    expect(beat?.failures).toEqual({
      "schedules of broken": "no such column",
      "sweep of broken": "no such table",
      "task 1": "no such house",
    });
  });

  it("reports no failure of the leader check any more when it leads after a database outage", async () => {
    const one = await reconciler([scheduled]);
    await world.sql`alter table leases rename to leases_away`;
    await world.sql`alter table heartbeats rename to heartbeats_away`;
    await one.tick(true);
    await world.sql`alter table leases_away rename to leases`;
    await world.sql`alter table heartbeats_away rename to heartbeats`;
    expect(world.lines.filter(({ level }) => level === LEVEL.warn)).toMatchObject([
      { step: "leadership" },
      { step: "leader check" },
    ]);
    await one.tick(true);
    expect(one.isLeading()).toBe(true);
    const [beat] = await world.sql<{ failures: object }[]>`select detail -> 'failures' as failures from heartbeats`;
    expect(beat?.failures).toEqual({});
  });

  it("runs a periodic task in its interval, cancels it after its timeout, and reports both in the heartbeat", async () => {
    const { sql, log } = world;
    let nowMs = 0;
    const runs: string[] = [];
    const hourly = { ...taskOf("hourly", async () => runs.push("hourly")), intervalSeconds: 3_600 };
    const slow = taskOf("slow", (until) => until`select pg_sleep(30)`, 0.2);
    const settings = loadSettings({});
    const context = { sql, settings, log, published: () => undefined };
    const periodic = createPeriodicTasks(
      () => [hourly, slow],
      context,
      () => nowMs,
    );
    const lease = createLease(sql, { name: RECONCILER, holder: "test" });
    const queues = await world.open([scheduled]);
    const one = createReconciler({ id: "test", queues, sql, settings, lease, periodic, log });
    await one.tick(true);
    nowMs += 1_800_000;
    await one.tick(true);
    expect(runs).toEqual(["hourly"]);
    expect((await findHeartbeat(sql))?.tasks).toMatchObject([
      { name: "hourly", intervalSeconds: 3_600, startedAt: expect.stringContaining("T"), failure: null },
      { name: "slow", failure: expect.stringContaining("expected an end within 0.2 s") },
    ]);
    nowMs += 1_800_000;
    await one.tick(true);
    expect(runs).toEqual(["hourly", "hourly"]);
  });

  it("begins its periodic tasks again in each leadership: what they remember of an earlier one is forgotten", async () => {
    const { sql, log } = world;
    const runs: number[] = [];
    const list = () => {
      let run = 0;
      return [{ ...taskOf("remembers", async () => runs.push((run += 1))), intervalSeconds: 3_600 }];
    };
    const settings = loadSettings({});
    const periodic = createPeriodicTasks(list, { sql, settings, log, published: () => undefined });
    const [first, second] = ["first", "second"].map((holder) => createLease(sql, { name: RECONCILER, holder }));
    const queues = await world.open([scheduled]);
    const one = createReconciler({ id: "first", queues, sql, settings, lease: first!, periodic, log });
    await one.tick(true);
    await one.tick(true);
    expect(runs).toEqual([1]);
    await one.tick(false);
    expect(await second!.hold()).toMatchObject({ isHeld: true });
    await second!.release();
    await one.tick(true);
    expect(runs).toEqual([1, 1]);
  });

  it("refuses a periodic task that may take as long as the leader's lease", () => {
    const { sql, log } = world;
    const context = { sql, settings: loadSettings({}), log, published: () => undefined };
    const list = (seconds: number) => () => [taskOf("long", () => Promise.resolve(), seconds)];
    expect(() => createPeriodicTasks(list(10), context)).toThrow(
      "expected a timeout below 10 s, the leader's lease, for the periodic task long, found 10 s",
    );
    expect(() => createPeriodicTasks(list(9.9), context)).not.toThrow();
  });

  it("does not undo schedules it could not read", async () => {
    let isDown = false;
    const job = {
      ...scheduled,
      schedule: async () => {
        if (isDown) throw new Error("connection refused");
        return [{ payload: { house: "alpha" }, everyMs: 60_000, offsetMs: 1 }];
      },
    };
    const one = await reconciler([job]);
    await one.tick(true);
    isDown = true;
    await one.tick(true);
    expect(await (await world.open([job])).get("tick").getJobSchedulersCount()).toBe(1);
  });

  it("forgets workers that have been silent for a minute", async () => {
    await world.sql`
      insert into workers (id, pid, host, version, queues, seen_at)
      values ('dead', 1, 'elsewhere', '0', '{}', now() - interval '61 seconds'),
             ('alive', 2, 'elsewhere', '0', '{}', now() - interval '30 seconds')`;
    await (await reconciler([scheduled])).tick(true);
    expect(await world.sql`select id from workers`).toMatchObject([{ id: "alive" }]);
  });

  it("that is silent for a minute is missed by the others, until one leads again", async () => {
    const first = await reconciler([scheduled], [], { id: "first", leaseMs: 600_000 });
    const second = await reconciler([scheduled], [], { id: "second" });
    await first.tick(true);
    const alertsAfter = async (seconds: number) => {
      await world.sql`delete from alerts`;
      await world.sql`update heartbeats set at = clock_timestamp() - ${seconds} * interval '1 second'`;
      await second.tick(true);
      return alerts("no_leader");
    };
    // again if a busy machine takes half a second for it
    await eventually(async () => (await alertsAfter(59)).length === 0);
    await eventually(async () => {
      expect(await alertsAfter(61)).toMatchObject([{ open: true, text: expect.stringContaining("61 s") }]);
      return true;
    });
    await first.tick(true);
    expect(await alerts("no_leader")).toMatchObject([{ open: false }]);
  });
});
