import { hostname } from "node:os";
import { openAlert } from "../alerts/store.ts";
import type { Settings, Variables } from "../config/environment.ts";
import type { Sql } from "../db/client.ts";
import { createLease, type Lease } from "../db/lease.ts";
import { createNotifier, type Notifier } from "../db/connections/notifier.ts";
import { UsageError } from "../errors.ts";
import type { HouseClient } from "../houses/polling/client.ts";
import type { Log } from "../log.ts";
import type { Passes } from "../pass/passes.ts";
import { nameProcess } from "../this-machine.ts";
import { LATE, valueOrLate } from "../within.ts";
import { type ClockGuard, guardClock } from "./clock-guard.ts";
import { readClocks } from "./clock.ts";
import { type Consumer, startConsumer } from "./consumer.ts";
import { finish } from "./finish.ts";
import type { Job, JobContext, WorkerPools } from "./job.ts";
import { createOverdueWatch } from "./schedules/overdue.ts";
import { createPeriodicTasks, type PeriodicTask } from "./schedules/periodic.ts";
import type { Queues } from "./queues.ts";
import { createReconciler, type Reconciler } from "./schedules/reconcile.ts";
import { isRedisUnavailable } from "./redis.ts";
import type { RunReport } from "./report.ts";
import { createRunner } from "./runs/run.ts";
import { createSteps, type Steps } from "./runs/steps.ts";
import { deleteWorker, RECONCILER, saveWorker } from "./store.ts";
import { every, type Repeated } from "./every.ts";
import { connectAll, type Connections } from "./worker-connections.ts";

const TICK_MS = 5_000;
const CLOCK_CHECK_MS = 60_000;
const GOODBYE_MS = 2_000;

/** What a worker process needs. */
export interface WorkerOptions {
  /** All jobs: the reconciler maintains every queue, whichever this process works on. */
  jobs: readonly Job<unknown>[];
  /** Names of the queues to work on; all if not given. */
  queues?: readonly string[] | undefined;
  /** The connections that most jobs share; the caller closes all connections after `stop`. */
  sql: Sql;
  /** Separate connections; `sql` replaces each one that is not given. */
  pools?: Partial<WorkerPools>;
  passes: Passes;
  redisUrl: string;
  settings: Settings;
  variables: Variables;
  http: HouseClient;
  log: Log;
  version: string;
  /** What the leader runs besides the reconciliation; each task fails alone. */
  periodicTasks?: () => readonly PeriodicTask[];
  /** Called when a run has ended. */
  ran?: (report: RunReport) => void;
  /** Called when this process cannot work any more and must be restarted. */
  onFatal: (error: Error) => void;
  /** The clock of this machine and the intervals in milliseconds; only tests set them. */
  now?: () => number;
  tickMs?: number;
  clockCheckMs?: number;
}

/** The health of a worker process. */
export interface WorkerHealth {
  /** Whether Redis is connected. */
  redis: boolean;
  /** Whether it takes work from all its queues. */
  taking: boolean;
  /** Whether it leads the reconciliation. */
  leading: boolean;
  /** What is wrong with the clock of this machine, or null. */
  clockProblem: string | null;
  /** `unfinishedMs`: for how long runs have started without one that completed. */
  queues: { queue: string; active: number; taking: boolean; unfinishedMs: number }[];
}

/** A running worker process. */
export interface Workers {
  /** All queues, over the connection that adds work; for reading them. */
  readonly queues: Queues;
  health(): WorkerHealth;
  /**
   * Takes no more work, waits up to `deadlineMs` for active runs, then aborts them and puts them back. Takes at most five
   * seconds longer than that.
   */
  stop(deadlineMs: number): Promise<void>;
}

/** The parts of a running process. */
interface WorkerParts {
  self: { id: string; pid: number; host: string; version: string; queues: string[] };
  connections: Connections;
  consumers: readonly Consumer[];
  lease: Lease;
  reconciler: Reconciler;
  checkOverdue: (consumer: Consumer) => Promise<void>;
  steps: Steps;
  clock: ClockGuard;
  notifier: Notifier;
  /** The connections of the process itself. */
  sql: Sql;
  /** Aborts all runs. */
  stop: AbortController;
  log: Log;
}

/**
 * Starts a worker process: BullMQ workers for each queue, and a tick every five seconds in which the process reports
 * itself, reconciles the queues if it leads, and looks for stuck queues. Once a minute it compares clocks; while its own is
 * wrong, it takes no work and does not lead.
 * @throws UsageError if Redis would lose work, a queue is not known, or the clock of this machine is wrong.
 */
export async function startWorkers(options: WorkerOptions): Promise<Workers> {
  const chosen = chooseJobs(options.jobs, options.queues);
  const worker = assemble(options, chosen, await connectAll(options));
  const ticks = every(options.tickMs ?? TICK_MS, () => tick(worker));
  return {
    queues: worker.connections.queues,
    health: () => healthOf(worker),
    stop: (deadlineMs) => stopWorker(worker, ticks, deadlineMs),
  };
}

function assemble(options: WorkerOptions, chosen: readonly Job<unknown>[], connections: Connections): WorkerParts {
  const { sql: shared, settings, log, version, onFatal, periodicTasks = () => [] } = options;
  const { polling: sql = shared } = options.pools ?? {};
  const { queues } = connections;
  const id = nameProcess();
  const stop = new AbortController();
  const notifier = createNotifier(shared, log);
  const consumers = startConsumers(options, chosen, { connections, notifier, stop });
  const lease = createLease(sql, { name: RECONCILER, holder: id });
  const published = (tableIds: readonly number[]) => notifier.published(tableIds);
  const periodic = createPeriodicTasks(periodicTasks, { sql: shared, settings, log, published });
  return {
    self: { id, pid: process.pid, host: hostname(), version, queues: chosen.map(({ name }) => name) },
    connections,
    consumers,
    lease,
    reconciler: createReconciler({ id, queues, sql: shared, settings, lease, periodic, log }),
    checkOverdue: createOverdueWatch({ queues, log, onFatal }),
    steps: createSteps(log),
    clock: pauseOnWrongClock(options, { sql, queues, consumers }),
    notifier,
    sql,
    stop,
    log,
  };
}

function startConsumers(
  options: WorkerOptions,
  chosen: readonly Job<unknown>[],
  { connections, notifier, stop }: Pick<WorkerParts, "connections" | "notifier" | "stop">,
): Consumer[] {
  const { sql, passes, http, settings, variables, log, ran } = options;
  const { polling = sql, long = sql } = options.pools ?? {};
  const pools: WorkerPools = { polling, long };
  const { queues, redis } = connections;
  const enqueue = enqueueOrLeave(queues, log);
  const shared = { passes, http, settings, variables, enqueue, published: notifier.published };
  return chosen.map((job) => {
    const context = { ...shared, sql: job.pool === undefined ? sql : pools[job.pool] };
    const runner = createRunner({ job, context, log, stop: stop.signal, ran });
    return startConsumer({ job, runner, redis, log });
  });
}

/** Guards the clock: while it is wrong, the consumers take no work. */
function pauseOnWrongClock(
  { now = Date.now, clockCheckMs = CLOCK_CHECK_MS, log }: WorkerOptions,
  { sql, queues, consumers }: { sql: Sql; queues: Queues; consumers: readonly Consumer[] },
): ClockGuard {
  return guardClock({
    now,
    read: () => readClocks(sql, queues.redis, now),
    everyMs: clockCheckMs,
    async onWrong(problem) {
      log.error(`no more work is taken: ${problem}`);
      await Promise.all(consumers.map((consumer) => consumer.pause()));
    },
    async onRight() {
      log.info("the clock is right again: work is taken again");
      await Promise.all(consumers.map((consumer) => consumer.resume()));
    },
  });
}

/** One tick. Returns milliseconds until the lease of another leader expires. */
async function tick(worker: WorkerParts): Promise<number> {
  const { steps, clock, reconciler, consumers, connections, checkOverdue } = worker;
  await steps.attempt("clock", () => clock.check());
  await steps.attempt("report", () => report(worker));
  const isRight = clock.problem() === null;
  const leaderExpiresInMs = await reconciler.tick(isRight);
  if (isRight && connections.queues.redis.status === "ready") {
    for (const consumer of consumers) await steps.attempt(`watch over ${consumer.queue}`, () => checkOverdue(consumer));
  }
  return leaderExpiresInMs;
}

/** Stores that the process is alive, and its memory. */
async function report({ self, clock, sql, log }: WorkerParts): Promise<void> {
  const problem = clock.problem();
  const text = problem === null ? null : `a worker on ${self.host} takes no work: ${problem}`;
  const { rss: rssBytes, heapUsed: heapBytes } = process.memoryUsage();
  await saveWorker(sql, { ...self, clockProblem: text, rssBytes, heapBytes });
  // the leader raises it too, but there may be none: a process with a wrong clock does not lead
  if (text !== null) await openAlert(sql, log, { kind: "clock_skew", subject: self.host, text });
}

function healthOf({ consumers, connections, reconciler, clock }: WorkerParts): WorkerHealth {
  const states = consumers.map((consumer) => {
    const { queue, runner } = consumer;
    return { queue, active: runner.active(), taking: consumer.isTaking(), unfinishedMs: runner.unfinishedMs() };
  });
  return {
    redis: connections.redis.status === "ready",
    taking: states.every(({ taking }) => taking),
    leading: reconciler.isLeading(),
    clockProblem: clock.problem(),
    queues: states,
  };
}

async function stopWorker(worker: WorkerParts, ticks: Repeated, deadlineMs: number): Promise<void> {
  const { self, consumers, lease, steps, notifier, sql, stop, log, connections } = worker;
  // first, so that another process leads while this one finishes
  const handedOver = steps.attempt("release of the lease", async () => {
    await ticks.stop();
    await lease.release();
  });
  await finish(consumers, deadlineMs, stop, log);
  const goodbye = steps.attempt("goodbye", async () => {
    await handedOver;
    await notifier.close();
    await deleteWorker(sql, self.id);
  });
  if ((await valueOrLate(GOODBYE_MS, goodbye)) === LATE)
    log.warn("the database did not confirm that this worker stops");
  await connections.close();
}

function chooseJobs(jobs: readonly Job<unknown>[], names: readonly string[] | undefined): readonly Job<unknown>[] {
  const known = jobs.map(({ name }) => name);
  const unknown = names?.filter((name) => !known.includes(name)) ?? [];
  if (unknown.length > 0)
    throw new UsageError(`there is no queue ${unknown.join(", ")}; the queues are ${known.join(", ")}`);
  return names === undefined ? jobs : jobs.filter(({ name }) => names.includes(name));
}

/** Queues work. While Redis is unavailable it is left to the sweep of its job, which finds it undone. */
function enqueueOrLeave(queues: Queues, log: Log): JobContext["enqueue"] {
  return async (next, payload) => {
    try {
      await queues.enqueue(next, payload);
    } catch (error) {
      if (next.sweep === null || (queues.redis.status === "ready" && !isRedisUnavailable(error))) throw error;
      log.debug({ queue: next.name }, "Redis is unavailable: the sweep will find this work");
    }
  };
}
