import { MetricsTime, WaitingError, Worker } from "bullmq";
import { queueTelemetry } from "../telemetry.ts";
import type { Log } from "../log.ts";
import type { Job } from "./job.ts";
import { BACKOFF, prefixOf } from "./queues.ts";
import { logQueueTrouble, type RedisConnection } from "./redis.ts";
import { retryDelayMs, type Runner } from "./run.ts";
import { endsWithin } from "./wait.ts";

/**
 * How soon the work of a killed process is taken up: after two checks, with these 10 to 20 s, against 30 to 90 s with
 * BullMQ's own settings. Long work may keep its process busy with computing for a while, so it has longer.
 */
const SHORT = { lockDuration: 10_000, stalledInterval: 5_000 };
const LONG = { lockDuration: 60_000, stalledInterval: 30_000 };
/** Above the timeout of a poll: a house whose poll was cut off must not wait for a long lock to run out. */
const LONG_TIMEOUT_MS = 70_000;
const MAX_STALLED = 5;
const REPLACE_WAIT_MS = 5_000;

/** One process's hands on one queue. */
export interface Consumer {
  readonly queue: string;
  readonly runner: Runner;
  /** Does it take work? False while paused and where its loop has ended. */
  isTaking(): boolean;
  /** Begins no more runs; those that continue are not touched. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Begins again on a new connection, for when the old one waits forever. Only while nothing runs. */
  replace(): Promise<void>;
  /** Stops taking and waits for what runs. */
  close(): Promise<void>;
}

/** Takes work from a job's queue until it is closed. `redis` is shared by all consumers; each adds one that blocks. */
export function startConsumer(options: {
  job: Job<unknown>;
  runner: Runner;
  redis: RedisConnection;
  log: Log;
}): Consumer {
  const { job, runner, redis } = options;
  const log = options.log.child({ queue: job.name });
  const open = () => openWorker(job, runner, redis, log);
  let worker = open();

  return {
    queue: job.name,
    runner,
    isTaking: () => worker.isRunning() && !worker.isPaused(),
    pause: async () => worker.pause(true),
    resume: async () => worker.resume(),
    async replace() {
      const old = worker;
      worker = open();
      const closed = await endsWithin(old.close(true), REPLACE_WAIT_MS);
      if (!closed) log.warn("the old connection does not close; it is left to itself");
    },
    close: async () => worker.close(),
  };
}

function openWorker(job: Job<unknown>, runner: Runner, redis: RedisConnection, log: Log): Worker {
  const pace = job.timeoutMs > LONG_TIMEOUT_MS ? LONG : SHORT;
  const worker = new Worker(
    job.name,
    // three parameters, or BullMQ passes no signal
    async (queued, token, signal) => {
      if (worker.isPaused()) {
        await queued.moveToWait(token); // a read that waited when we paused has brought it
        throw new WaitingError();
      }
      await runner.process(queued, token, signal);
    },
    {
      connection: redis,
      prefix: prefixOf(job.name),
      ...queueTelemetry(),
      concurrency: job.concurrency,
      ...pace,
      maxStalledCount: MAX_STALLED,
      metrics: { maxDataPoints: MetricsTime.ONE_WEEK },
      settings: {
        backoffStrategy: (attempt, type) => {
          if (type !== BACKOFF) throw new Error(`the back-off ${type} is not known; expected ${BACKOFF}`);
          return retryDelayMs(job.retry, attempt, Math.random());
        },
      },
    },
  );
  worker.on("error", logQueueTrouble(log, `worker of ${job.name}`));
  let lookAgain: NodeJS.Timeout | null = null;
  // BullMQ looks for lost runs no more after an error that is not the connection's, such as that of a Redis whose disk is full
  worker.on("error", () => {
    lookAgain ??= setTimeout(() => {
      lookAgain = null;
      if (worker.isRunning()) void worker.startStalledCheckTimer();
    }, pace.stalledInterval).unref();
  });
  worker.on("stalled", (id) => log.warn({ id }, "a run lost its worker and begins again"));
  worker.on("lockRenewalFailed", (ids) => {
    for (const id of ids) worker.cancelJob(id, "its lock was lost: another worker may run it");
  });
  worker.on("failed", (queued, error) => {
    if (runner.isLogged(error)) return;
    runner.lost();
    log.error({ id: queued?.id, payload: queued?.data as unknown }, `failed permanently: ${error.message}`);
  });
  return worker;
}
