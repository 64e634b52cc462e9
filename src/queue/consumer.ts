import { MetricsTime, WaitingError, Worker } from "bullmq";
import { queueTelemetry } from "../telemetry.ts";
import type { Log } from "../log.ts";
import { LATE, valueOrLate } from "../within.ts";
import type { Job } from "./job.ts";
import { BACKOFF, prefixOf } from "./queues.ts";
import { logQueueErrors, type RedisConnection } from "./redis.ts";
import { retryDelayMs } from "./runs/failure.ts";
import type { Runner } from "./runs/run.ts";

/**
 * The work of a killed process is restarted after two checks: 10 to 20 s with these settings, 30 to 90 s with the defaults
 * of BullMQ. Long work may keep its process busy with computing, so its locks last longer.
 */
const SHORT = { lockDuration: 10_000, stalledInterval: 5_000 };
const LONG = { lockDuration: 60_000, stalledInterval: 30_000 };
/** Longer than the timeout of a poll: a house whose poll was killed must not wait for a long lock to expire. */
const LONG_TIMEOUT_MS = 80_000;
const MAX_STALLED = 5;
/**
 * BullMQ fetches waiting runs one by one, and starts none before it has fetched as many as it may or none is left. So a
 * queue with many runs at a time has several workers, which fetch side by side: with one, 100 runs per second of a process
 * with 10,000 tables started up to 6 s late; with ten, 96 to 98 % within 2 s. Each also wakes for every due run.
 */
const RUNS_OF_WORKER = 1_000;
const REPLACE_WAIT_MS = 5_000;

/** Takes the work of one queue in one process. */
export interface Consumer {
  readonly queue: string;
  readonly runner: Runner;
  /** Whether it takes work: not while it is paused or after its loop has ended. */
  isTaking(): boolean;
  /** Starts no more runs; active ones continue, and long ones end early. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /**
   * Replaces the workers that stopped; if none did, all, since their connections may be stuck: only while no run is
   * active.
   */
  replace(): Promise<void>;
  /** Takes no more work and waits for active runs. */
  close(): Promise<void>;
}

/**
 * Takes work from the queue of a job until it is closed. All consumers share `redis`; each worker opens one more connection
 * for blocking reads.
 */
export function startConsumer(options: {
  job: Job<unknown>;
  runner: Runner;
  redis: RedisConnection;
  log: Log;
}): Consumer {
  const { job, runner, redis } = options;
  const log = options.log.child({ queue: job.name });
  const count = Math.ceil(job.concurrency / RUNS_OF_WORKER);
  const concurrency = Math.ceil(job.concurrency / count);
  let ending = new AbortController();
  const open = () => openWorker(job, { concurrency, runner, redis, log, ending: () => ending.signal });
  const each = async (act: (worker: Worker) => Promise<void>) => {
    await Promise.all(workers.map(act));
  };
  let workers = Array.from({ length: count }, open);

  return {
    queue: job.name,
    runner,
    isTaking: () => workers.every(isTaking),
    async pause() {
      ending.abort();
      await each((worker) => worker.pause(true));
    },
    async resume() {
      ending = new AbortController();
      await each(async (worker) => worker.resume());
    },
    async replace() {
      const stopped = workers.filter((worker) => !isTaking(worker));
      const old = new Set(stopped.length > 0 ? stopped : workers);
      workers = workers.map((worker) => (old.has(worker) ? open() : worker));
      const closing = Promise.all([...old].map((worker) => worker.close(true)));
      if ((await valueOrLate(REPLACE_WAIT_MS, closing)) === LATE)
        log.warn("the old connections do not close; they are abandoned");
    },
    async close() {
      ending.abort();
      await each((worker) => worker.close());
    },
  };
}

function isTaking(worker: Worker): boolean {
  return worker.isRunning() && !worker.isPaused();
}

function openWorker(
  job: Job<unknown>,
  {
    concurrency,
    runner,
    redis,
    log,
    ending,
  }: { concurrency: number; runner: Runner; redis: RedisConnection; log: Log; ending: () => AbortSignal },
): Worker {
  const pace = job.timeoutMs > LONG_TIMEOUT_MS ? LONG : SHORT;
  const worker = new Worker(
    job.name,
    // three parameters, or BullMQ passes no signal
    async (queued, token, signal) => {
      if (worker.isPaused()) {
        await queued.moveToWait(token); // a blocking read that began before the pause returned it
        throw new WaitingError();
      }
      await runner.process(queued, token, { signal, ending: ending() });
    },
    {
      connection: redis,
      prefix: prefixOf(job.name),
      ...queueTelemetry(),
      concurrency,
      ...pace,
      maxStalledCount: MAX_STALLED,
      metrics: { maxDataPoints: MetricsTime.ONE_WEEK },
      settings: {
        backoffStrategy: (attempt, type) => {
          if (type !== BACKOFF) throw new Error(`expected the back-off ${BACKOFF}, found ${type}`);
          return retryDelayMs(job.retry, attempt, Math.random());
        },
      },
    },
  );
  worker.on("error", logQueueErrors(log, `worker of ${job.name}`));
  let restartCheck: NodeJS.Timeout | null = null;
  // BullMQ stops its check for lost runs after an error other than of the connection, such as a full disk of Redis
  worker.on("error", () => {
    restartCheck ??= setTimeout(() => {
      restartCheck = null;
      if (worker.isRunning()) void worker.startStalledCheckTimer();
    }, pace.stalledInterval).unref();
  });
  worker.on("stalled", (id) => log.warn({ id }, "a run lost its worker and starts again"));
  worker.on("lockRenewalFailed", (ids) => {
    if (job.lasts !== undefined) return; // it ends soon, and leases make a second run of its key harmless
    for (const id of ids) worker.cancelJob(id, "its lock was lost: another worker may run it");
  });
  worker.on("failed", (queued, error) => {
    if (runner.isLogged(error)) return;
    runner.lost();
    log.error({ id: queued?.id, payload: queued?.data as unknown }, `failed permanently: ${error.message}`);
  });
  return worker;
}
