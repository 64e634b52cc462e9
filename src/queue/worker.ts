import { hostname } from "node:os";
import { openAlert } from "../alerts/store.ts";
import type { Settings, Variables } from "../config/environment.ts";
import type { Sql } from "../db/client.ts";
import { createLease } from "../db/lease.ts";
import { createNotifier } from "../db/notifier.ts";
import { UsageError } from "../errors.ts";
import type { HouseClient } from "../houses/polling/client.ts";
import type { Log } from "../log.ts";
import type { Passes } from "../pass/passes.ts";
import { nameProcess } from "../this-machine.ts";
import { guardClock } from "./clock-guard.ts";
import { readClocks, requireRightClock } from "./clock.ts";
import { type Consumer, startConsumer } from "./consumer.ts";
import type { Job, JobContext, WorkerPools } from "./job.ts";
import { createOverdueWatch } from "./overdue.ts";
import { createParts } from "./parts.ts";
import { openQueues, type Queues } from "./queues.ts";
import { createReconciler } from "./reconcile.ts";
import { checkRedis, connectConsumer, isRedisTrouble } from "./redis.ts";
import type { RunReport } from "./report.ts";
import { createRunner } from "./run.ts";
import { deleteWorker, RECONCILER, saveWorker } from "./store.ts";
import { endsWithin, every } from "./wait.ts";

const TICK_MS = 5_000;
const CLOCK_CHECK_MS = 60_000;
/** Aborted runs have two seconds to end; then the process goes, and their locks run out elsewhere. */
const ABORT_MS = 3_000;
const GOODBYE_MS = 2_000;

/** What a worker process is made of. */
export interface WorkerOptions {
  /** All jobs there are: the reconciler looks after every queue, whichever this process works on. */
  jobs: readonly Job<unknown>[];
  /** Names of the queues to work on; all where it is not given. */
  queues?: readonly string[] | undefined;
  /** The connections that most jobs share; the caller closes all of them after `stop`. */
  sql: Sql;
  /** Those apart; when one is not given, `sql` serves. */
  pools?: Partial<WorkerPools>;
  passes: Passes;
  redisUrl: string;
  settings: Settings;
  variables: Variables;
  http: HouseClient;
  log: Log;
  version: string;
  /** What else the leader does at every tick; each hook fails alone. */
  everyTick?: readonly ((sql: Sql) => Promise<void>)[];
  /** Told of each run of a job that is over. */
  ran?: (report: RunReport) => void;
  /** Told where this process cannot work any more and must be started again. */
  onFatal: (error: Error) => void;
  /** This machine's clock, and the pace in milliseconds; given only by tests. */
  now?: () => number;
  tickMs?: number;
  clockCheckMs?: number;
}

/** How a worker process is doing. */
export interface WorkerHealth {
  /** Is Redis connected? */
  redis: boolean;
  /** Does it take work from all its queues? */
  taking: boolean;
  /** Does it lead the reconciliation? */
  leading: boolean;
  /** What is wrong with this machine's clock, or null. */
  clockProblem: string | null;
  /** `unfinishedMs`: for how long runs were begun without one that was done. */
  queues: { queue: string; active: number; taking: boolean; unfinishedMs: number }[];
}

/** A worker process at work. */
export interface Workers {
  /** All queues, over the connection that hands out work: for looking at them. */
  readonly queues: Queues;
  health(): WorkerHealth;
  /**
   * Takes no more work, waits up to `deadlineMs` for what runs, then aborts it and puts it back. Takes five seconds
   * more than that at most.
   */
  stop(deadlineMs: number): Promise<void>;
}

/**
 * Starts working: a BullMQ worker for each queue, and a tick every five seconds in which the process reports itself,
 * reconciles the queues if it leads, and looks for queues that stand still. Once a minute it compares clocks; while its
 * own is wrong it takes no work and does not lead.
 * @throws UsageError where Redis would lose work, a queue is not known, or the clock of this machine is wrong.
 */
export async function startWorkers(options: WorkerOptions): Promise<Workers> {
  const {
    jobs,
    sql,
    passes,
    log,
    version,
    onFatal,
    settings,
    variables,
    http,
    everyTick = [],
    now = Date.now,
  } = options;
  const { polling = sql, long = sql } = options.pools ?? {};
  const pools: WorkerPools = { polling, long };
  const chosen = chooseJobs(jobs, options.queues);
  const { queues, redis, close } = await connectAll(options, now);
  const id = nameProcess();
  const self = { id, pid: process.pid, host: hostname(), version, queues: chosen.map(({ name }) => name) };

  const stop = new AbortController();
  const notifier = createNotifier(sql, log);
  const enqueue = nudge(queues, log);
  const shared = { passes, http, settings, variables, enqueue, published: notifier.published };
  const consumers = chosen.map((job) => {
    const context = { ...shared, sql: job.pool === undefined ? sql : pools[job.pool] };
    const runner = createRunner({ job, context, log, stop: stop.signal, ran: options.ran });
    return startConsumer({ job, runner, redis, log });
  });

  const lease = createLease(polling, { name: RECONCILER, holder: id });
  const reconciler = createReconciler({ id, queues, sql, settings, lease, everyTick, log });
  const checkOverdue = createOverdueWatch({ queues, log, onFatal });
  const parts = createParts(log);
  const clock = guardClock({
    now,
    read: () => readClocks(polling, queues.redis, now),
    everyMs: options.clockCheckMs ?? CLOCK_CHECK_MS,
    async onWrong(problem) {
      log.error(`no more work is taken: ${problem}`);
      await Promise.all(consumers.map((consumer) => consumer.pause()));
    },
    async onRight() {
      log.info("the clock is right again: work is taken again");
      await Promise.all(consumers.map((consumer) => consumer.resume()));
    },
  });

  async function report(): Promise<void> {
    const problem = clock.problem();
    const text = problem === null ? null : `a worker on ${self.host} takes no work: ${problem}`;
    const { rss: rssBytes, heapUsed: heapBytes } = process.memoryUsage();
    await saveWorker(polling, { ...self, clockProblem: text, rssBytes, heapBytes });
    // the leader raises it too, but there may be none: a process with a wrong clock does not lead
    if (text !== null) await openAlert(polling, log, { kind: "clock_skew", subject: self.host, text });
  }

  const ticks = every(options.tickMs ?? TICK_MS, async () => {
    await parts.attempt("clock", () => clock.check());
    await parts.attempt("report", report);
    const isRight = clock.problem() === null;
    const leaderExpiresInMs = await reconciler.tick(isRight);
    if (isRight && queues.redis.status === "ready") {
      for (const consumer of consumers)
        await parts.attempt(`watch over ${consumer.queue}`, () => checkOverdue(consumer));
    }
    return leaderExpiresInMs;
  });

  return {
    queues,
    health() {
      const states = consumers.map((consumer) => {
        const { queue, runner } = consumer;
        return { queue, active: runner.active(), taking: consumer.isTaking(), unfinishedMs: runner.unfinishedMs() };
      });
      return {
        redis: redis.status === "ready",
        taking: states.every(({ taking }) => taking),
        leading: reconciler.isLeading(),
        clockProblem: clock.problem(),
        queues: states,
      };
    },
    async stop(deadlineMs) {
      // first of all, so that another process leads while this one finishes
      const handedOver = parts.attempt("handing over", async () => {
        await ticks.stop();
        await lease.release();
      });
      await finish(consumers, deadlineMs, stop, log);
      const goodbye = parts.attempt("goodbye", async () => {
        await handedOver;
        await notifier.close();
        await deleteWorker(polling, id);
      });
      if (!(await endsWithin(goodbye, GOODBYE_MS))) log.warn("the database did not hear that this worker stops");
      await close();
    },
  };
}

/** Waits for what runs, aborts it after `deadlineMs`, and leaves it behind where it does not end even then. */
async function finish(
  consumers: readonly Consumer[],
  deadlineMs: number,
  stop: AbortController,
  log: Log,
): Promise<void> {
  const runs = () => consumers.reduce((sum, { runner }) => sum + runner.active(), 0);
  const finished = Promise.allSettled(consumers.map((consumer) => consumer.close()));
  if (await endsWithin(finished, deadlineMs)) return;
  if (runs() === 0) {
    log.warn("the connections to Redis do not close: leaving all the same");
    return;
  }
  log.warn({ runs: runs() }, `runs did not end within ${deadlineMs} ms: aborting them`);
  stop.abort(new Error("the worker stops"));
  if (await endsWithin(finished, ABORT_MS)) return;
  log.error({ runs: runs() }, "leaving runs behind: they begin again elsewhere when their locks run out");
}

async function connectAll(options: WorkerOptions, now: () => number) {
  const { jobs, redisUrl, sql, log } = options;
  await checkRedis(redisUrl);
  const queues = await openQueues(jobs, redisUrl, log);
  const redis = await connectConsumer(redisUrl, log);
  const close = async () => {
    await queues.close();
    redis.disconnect();
  };
  try {
    await requireRightClock(sql, queues.redis, now);
  } catch (error) {
    await close();
    throw error;
  }
  return { queues, redis, close };
}

function chooseJobs(jobs: readonly Job<unknown>[], names: readonly string[] | undefined): readonly Job<unknown>[] {
  const known = jobs.map(({ name }) => name);
  const unknown = names?.filter((name) => !known.includes(name)) ?? [];
  if (unknown.length > 0)
    throw new UsageError(`there is no queue ${unknown.join(", ")}; the queues are ${known.join(", ")}`);
  return names === undefined ? jobs : jobs.filter(({ name }) => names.includes(name));
}

/** Hands work over. While Redis is away a nudge is dropped, for the sweep of that job will find the work. */
function nudge(queues: Queues, log: Log): JobContext["enqueue"] {
  return async (next, payload) => {
    try {
      await queues.enqueue(next, payload);
    } catch (error) {
      if (next.sweep === null || (queues.redis.status === "ready" && !isRedisTrouble(error))) throw error;
      log.debug({ queue: next.name }, "Redis is away: the sweep will find this work");
    }
  };
}
