import { DelayedError, type Job as QueuedRun, UnrecoverableError, WaitingError } from "bullmq";
import { isConnectionError } from "../db/errors.ts";
import { PermanentError, reasonOf, ThrottledError } from "../errors.ts";
import type { Log } from "../log.ts";
import { createAttempts } from "./attempt.ts";
import type { Counts, Job, JobContext, Retry } from "./job.ts";
import { problemsOf } from "./queues.ts";
import type { RunOutcome, RunReport } from "./report.ts";
import { createTraces } from "./traces.ts";

/** A run without work, to wake a queue whose delayed runs are not picked up (taskforcesh/bullmq#3516). */
export const WAKE = "wake";

/** BullMQ never gives up a tick that kills its process, so we do. */
const MAX_CRASHES = 3;
/** Counts of what was looked at and not of what came of it: a poll that found nothing new is no news, five times a second. */
const LOOKED: ReadonlySet<string> = new Set(["skipped", "behind", "requests", "unchanged"]);
const BUSY_WAIT_MS = 1_000;
const OUTAGE_WAIT_MS = { least: 1_000, most: 5_000 };

/** The runs of one job in one process. */
export interface Runner {
  /** What BullMQ calls. It has to have three parameters, or BullMQ passes no signal. */
  process(queued: QueuedRun, token: string | undefined, signal: AbortSignal | undefined): Promise<void>;
  /** How many runs are going on. */
  active(): number;
  /** For how long runs were begun without one that was done, in milliseconds; 0 if the last one was. */
  unfinishedMs(): number;
  /** Has the failure with this error been logged? */
  isLogged(error: Error): boolean;
  /** Counts a run that failed without coming here: its process died too often. */
  lost(): void;
}

/**
 * Runs one job and tells the queue how it ended:
 *
 * - it gave its counts: done, one log line, at debug level where it did nothing;
 * - it threw, took too long or lost its lock: tried again after a back-off, until its attempts are spent;
 * - PermanentError, or a payload that is not valid: failed permanently;
 * - ThrottledError, or PostgreSQL out of reach: waits and spends no attempt;
 * - its worker stops: put back, for another worker.
 *
 * A tick, which is a scheduled run of a job with one attempt, never waits: the next tick does the same, and waiting
 * ticks would pile up. Of one key, one run at a time continues in this process; see {@link createAttempts}.
 */
export function createRunner(options: {
  job: Job<unknown>;
  context: Omit<JobContext, "signal" | "log" | "follow">;
  log: Log;
  stop: AbortSignal;
  /** Told of each run that is over. */
  ran?: ((report: RunReport) => void) | undefined;
}): Runner {
  const { job, context, stop } = options;
  const attempts = createAttempts({ timeoutMs: job.timeoutMs, stop });
  const logged = new WeakSet<Error>();
  let active = 0;
  let unfinishedSince: number | null = null;

  async function run(queued: QueuedRun, token: string | undefined, cancelled: AbortSignal): Promise<void> {
    const attempt = queued.attemptsMade + 1;
    const isTick = queued.repeatJobKey !== undefined && job.retry.attempts === 1;
    const queueLog = options.log.child({ queue: job.name });
    const begunAt = performance.now();
    const report = (outcome: RunOutcome, counts: Counts | null = null) => {
      options.ran?.({ queue: job.name, outcome, seconds: (performance.now() - begunAt) / 1_000, counts });
    };
    if (queued.repeatJobKey !== undefined && queued.stalledCounter >= MAX_CRASHES) {
      report("failed");
      throw finalFailure(queueLog, `its process died ${queued.stalledCounter} times while it ran`);
    }
    const parsed = job.payload.safeParse(queued.data);
    if (!parsed.success) {
      report("failed");
      throw finalFailure(queueLog, `the payload is not valid: ${problemsOf(parsed.error)}`);
    }
    const key = job.key(parsed.data);
    const log = queueLog.child({ key });
    if (attempts.isBusy(key)) {
      report("skipped");
      log.debug({ attempt }, "skipped: a run of this key is still going on");
      if (isTick) return;
      throw await putOff(queued, token, BUSY_WAIT_MS);
    }
    const { follow, lines } = createTraces();
    unfinishedSince ??= begunAt;
    const outcome = await attempts.make(
      key,
      async (signal) => job.run(parsed.data, { ...context, log, signal, follow }),
      log,
      cancelled,
    );
    const [traces, ...more] = lines();
    const facts = { attempt, ms: Math.round(performance.now() - begunAt), ...(traces === undefined ? {} : { traces }) };
    for (const names of more) log.info({ traces: names }, "the run that ends with the next line is also about these");
    if (outcome.kind === "done") {
      unfinishedSince = active > 1 ? performance.now() : null;
      report("done", outcome.counts);
      log[didNothing(outcome.counts) ? "debug" : "info"]({ ...facts, counts: outcome.counts }, "done");
      return;
    }
    if (outcome.kind === "stopped") {
      report("stopped");
      log.info(facts, "stopped with its worker; another one runs it again");
      await queued.moveToWait(token);
      throw new WaitingError();
    }
    const { error } = outcome;
    const reason = reasonOf(error);
    if (error instanceof PermanentError) {
      report("failed");
      throw finalFailure(log.child({ ...facts, err: error }), reason);
    }
    const waitMs = waitOf(error);
    if (waitMs !== null && !isTick) {
      report("waited");
      log.warn({ ...facts, waitMs }, `waits: ${reason}`);
      throw await putOff(queued, token, waitMs);
    }
    if (isTick && error instanceof ThrottledError) {
      report("waited");
      log.info(facts, `leaves it to a later tick: ${reason}`);
      return;
    }
    report(isTick || attempt < job.retry.attempts ? "retried" : "failed");
    if (isTick) log.warn({ ...facts, err: error }, `failed, and the next tick tries again: ${reason}`);
    else if (attempt < job.retry.attempts) log.warn({ ...facts, err: error }, `failed, and is tried again: ${reason}`);
    else log.error({ ...facts, err: error }, `failed, and was the last attempt: ${reason}`);
    throw known(new Error(reason, { cause: error }));
  }

  function finalFailure(log: Log, reason: string): Error {
    log.error(`failed permanently: ${reason}`);
    return known(new UnrecoverableError(reason));
  }

  function known(error: Error): Error {
    logged.add(error);
    return error;
  }

  return {
    async process(queued, token, signal) {
      if (queued.name === WAKE) return;
      active++;
      try {
        await run(queued, token, signal ?? stop);
      } finally {
        active--;
      }
    },
    active: () => active,
    unfinishedMs: () => (unfinishedSince === null ? 0 : performance.now() - unfinishedSince),
    isLogged: (error) => logged.has(error),
    lost: () => options.ran?.({ queue: job.name, outcome: "failed", seconds: 0, counts: null }),
  };
}

/**
 * How long a run that failed `attempt` times waits: a random share of `firstMs`, doubled with each failure up to
 * `maxMs` (full jitter, so that what failed together does not come back together). `chance` is from [0, 1).
 *
 * @example
 * retryDelayMs({ attempts: 5, firstMs: 1000, maxMs: 5000 }, 1, 0.5); // => 500
 * retryDelayMs({ attempts: 5, firstMs: 1000, maxMs: 5000 }, 4, 0.5); // => 2500
 */
export function retryDelayMs(retry: Retry, attempt: number, chance: number): number {
  return Math.floor(chance * Math.min(retry.maxMs, retry.firstMs * 2 ** (attempt - 1)));
}

function didNothing(counts: Counts): boolean {
  return Object.entries(counts).every(([name, count]) => LOOKED.has(name) || count === 0);
}

/** How long a run waits without spending an attempt, in milliseconds; null if it failed. */
function waitOf(error: unknown): number | null {
  if (error instanceof ThrottledError) return error.waitMs;
  const { least, most } = OUTAGE_WAIT_MS;
  return isOutage(error) ? least + Math.random() * (most - least) : null;
}

function isOutage(error: unknown): boolean {
  return isConnectionError(error) || (error instanceof Error && error.cause !== undefined && isOutage(error.cause));
}

async function putOff(queued: QueuedRun, token: string | undefined, waitMs: number): Promise<DelayedError> {
  await queued.moveToDelayed(Date.now() + Math.round(waitMs), token);
  return new DelayedError();
}
