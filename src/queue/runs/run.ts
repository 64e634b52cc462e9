import { DelayedError, type Job as QueuedRun, UnrecoverableError, WaitingError } from "bullmq";
import type { Sql } from "../../db/client.ts";
import { isOutage } from "../../db/errors.ts";
import { PermanentError, reasonOf, stackOf, ThrottledError } from "../../errors.ts";
import { createRepeatLevel, type Log } from "../../log.ts";
import { hideSecretsIn } from "../../secrets.ts";
import { createAttempts } from "./attempt.ts";
import type { Counts, Job, JobContext, Retry } from "../job.ts";
import { createMissedTicks } from "./missed-ticks.ts";
import { problemsOf } from "../queues.ts";
import type { RunOutcome, RunReport } from "../report.ts";
import { createTraces } from "../traces.ts";

/** A run without work, to wake a queue whose delayed runs are not picked up (taskforcesh/bullmq#3516). */
export const WAKE = "wake";

/** BullMQ retries a tick that kills its process without limit. */
const MAX_CRASHES = 3;
/** Counts that are no result: a run of polls without new rounds is logged at debug level. */
const NO_RESULTS: ReadonlySet<string> = new Set(["skipped", "behind", "requests", "unchanged"]);
const LONGEST_STACK = 8_000;
const BUSY_WAIT_MS = 1_000;
const OUTAGE_WAIT_MS = { least: 1_000, most: 5_000 };

/** The runs of one job in one process. */
export interface Runner {
  /** The processor for BullMQ. `ending` is aborted when the process takes no more work. */
  process(queued: QueuedRun, token: string | undefined, signals: Signals): Promise<void>;
  /** The number of active runs. */
  active(): number;
  /** Milliseconds since runs began to start without one that completed; 0 if the last one completed. */
  unfinishedMs(): number;
  /** Whether the failure with this error has been logged. */
  isLogged(error: Error): boolean;
  /** Counts a run that failed outside of `process`, because its worker process died too often. */
  lost(): void;
}

interface Signals {
  /** Of BullMQ: aborted when the run is cancelled. */
  signal: AbortSignal | undefined;
  ending: AbortSignal;
}

/** What every step of an attempt needs. */
interface Attempt {
  job: Job<unknown>;
  queued: QueuedRun;
  token: string | undefined;
  /** Counted from 1. */
  number: number;
  /** A scheduled run of a job with one attempt, or a run that lasts until the next tick: that one is its retry. */
  isTick: boolean;
  log: Log;
  startedAt: number;
  report(outcome: RunOutcome, counts?: Counts): void;
}

/** The fields of the log line that ends an attempt. */
interface Facts {
  attempt: number;
  ms: number;
  traces?: string[];
}

/** While PostgreSQL is away, ticks of all houses fail with the same reason. */
const outageLevel = createRepeatLevel();

/** Errors whose failure has a log line. */
const logged = new WeakSet<Error>();

/**
 * Runs one job and reports the outcome to the queue:
 *
 * - it returned its counts: done, with one log line, at debug level if nothing was done;
 * - it threw, timed out or lost its lock: retried after a back-off, until its attempts are spent;
 * - PermanentError, or an invalid payload: failed permanently;
 * - ThrottledError, or PostgreSQL out of reach: delayed without spending an attempt;
 * - its worker stops: put back for another worker.
 *
 * A tick, which is a scheduled run of a job with one attempt, is never delayed: the next tick does the same work, and
 * delayed ticks would pile up. A run that lasts until the next tick queues that tick again if it arrived too early. In this
 * process one run per key is active at a time; see {@link createAttempts}.
 */
export function createRunner(options: {
  job: Job<unknown>;
  context: Omit<JobContext, "signal" | "ending" | "log" | "follow">;
  log: Log;
  stop: AbortSignal;
  /** Called when a run has ended. */
  ran?: ((report: RunReport) => void) | undefined;
}): Runner {
  const { job, context, stop } = options;
  const attempts = createAttempts({ timeoutMs: job.timeoutMs, stop });
  const ticks = job.lasts === undefined ? null : createMissedTicks(job, context);
  let active = 0;
  let unfinishedSince: number | null = null;

  async function run(queued: QueuedRun, token: string | undefined, signals: Signals): Promise<void> {
    const begun = beginAttempt(queued, token, options);
    const payload = parsePayload(begun);
    await requireFewCrashes(begun, payload, context.sql);
    const key = job.key(payload);
    const attempt = { ...begun, log: begun.log.child({ key }) };
    if (!attempts.isBusy(key)) {
      const work = () => make(attempt, key, payload, signals);
      return ticks === null ? work() : ticks.run(key, payload, work);
    }
    ticks?.note(key, payload);
    return skip(attempt);
  }

  async function make(attempt: Attempt, key: string, payload: unknown, signals: Signals): Promise<void> {
    unfinishedSince ??= attempt.startedAt;
    const { follow, lines } = createTraces();
    const { ending } = signals;
    const work = (signal: AbortSignal) => job.run(payload, { ...context, log: attempt.log, signal, ending, follow });
    const outcome = await attempts.make(key, work, attempt.log, signals.signal ?? stop);
    if (outcome.kind === "done") unfinishedSince = active > 1 ? performance.now() : null;
    const facts = factsOf(attempt, lines());
    if (outcome.kind === "done") return complete(attempt, facts, outcome.counts);
    if (outcome.kind === "stopped") return putBack(attempt, facts);
    if (isGivenUp(attempt, outcome.error)) await giveUp(attempt, payload, context.sql, outcome.error);
    return fail(attempt, facts, outcome.error);
  }

  return {
    async process(queued, token, signals) {
      if (queued.name === WAKE) return;
      active++;
      try {
        await run(queued, token, signals);
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

function beginAttempt(
  queued: QueuedRun,
  token: string | undefined,
  { job, log, ran }: Pick<Parameters<typeof createRunner>[0], "job" | "log" | "ran">,
): Attempt {
  const startedAt = performance.now();
  return {
    job,
    queued,
    token,
    number: queued.attemptsMade + 1,
    isTick: job.lasts !== undefined || (queued.repeatJobKey !== undefined && job.retry.attempts === 1),
    log: log.child({ queue: job.name }),
    startedAt,
    report(outcome, counts) {
      ran?.({ queue: job.name, outcome, seconds: (performance.now() - startedAt) / 1_000, counts: counts ?? null });
    },
  };
}

/** @throws UnrecoverableError if the run killed its worker process too often; the job reports it first. */
async function requireFewCrashes(attempt: Attempt, payload: unknown, sql: Sql): Promise<void> {
  const { queued } = attempt;
  if (queued.repeatJobKey === undefined || queued.stalledCounter < MAX_CRASHES) return;
  const reason = `its process died ${queued.stalledCounter} times while it ran`;
  await giveUp(attempt, payload, sql, new Error(reason));
  attempt.report("failed");
  throw permanentFailure(attempt.log, reason);
}

/** @throws UnrecoverableError if the payload is not valid. */
function parsePayload(attempt: Attempt): unknown {
  const { data, error } = attempt.job.payload.safeParse(attempt.queued.data);
  if (error === undefined) return data;
  attempt.report("failed");
  throw permanentFailure(attempt.log, `the payload is not valid: ${problemsOf(error)}`);
}

/** Another run of this key is active: a tick is dropped, any other run is delayed. */
async function skip(attempt: Attempt): Promise<void> {
  attempt.report("skipped");
  attempt.log.debug({ attempt: attempt.number }, "skipped: a run of this key is still active");
  if (!attempt.isTick) throw await delayRun(attempt, BUSY_WAIT_MS);
}

/** The facts for the log. Names of payloads that do not fit into one line get their own lines. */
function factsOf({ number, startedAt, log }: Attempt, [traces, ...more]: string[][]): Facts {
  for (const names of more) log.info({ traces: names }, "the run that ends with the next line is also about these");
  const ms = Math.round(performance.now() - startedAt);
  return { attempt: number, ms, ...(traces === undefined ? {} : { traces }) };
}

function complete(attempt: Attempt, facts: Facts, counts: Counts): void {
  attempt.report("done", counts);
  attempt.log[didNothing(counts) ? "debug" : "info"]({ ...facts, counts }, "done");
}

async function putBack(attempt: Attempt, facts: Facts): Promise<never> {
  attempt.report("stopped");
  attempt.log.info(facts, "stopped with its worker; another one runs it again");
  await attempt.queued.moveToWait(attempt.token);
  throw new WaitingError();
}

/** Whether the run is not tried again after this error. */
function isGivenUp(attempt: Attempt, error: unknown): boolean {
  if (error instanceof PermanentError) return true;
  return waitOf(error) === null && isLastAttempt(attempt);
}

/** Lets the job report its failure. Never throws: the failure is also logged. */
async function giveUp({ job, log }: Attempt, payload: unknown, sql: Sql, error: unknown): Promise<void> {
  try {
    await job.gaveUp?.(payload, reasonOf(error), { sql, log });
  } catch (failure) {
    log.error({ err: failure }, `the failure of the run is only logged: ${reasonOf(failure)}`);
  }
}

function isLastAttempt({ isTick, number, job }: Attempt): boolean {
  return !isTick && number >= job.retry.attempts;
}

/** @throws the error by which BullMQ decides how to continue; returns if a later tick does the work. */
async function fail(attempt: Attempt, facts: Facts, error: unknown): Promise<void> {
  if (error instanceof PermanentError) return failPermanently(attempt, facts, error);
  const waitMs = waitOf(error);
  if (waitMs !== null && !attempt.isTick) return waitAndRepeat(attempt, facts, { error, waitMs });
  if (attempt.isTick && error instanceof ThrottledError) return leaveToLaterTick(attempt, facts, error);
  return retryOrGiveUp(attempt, facts, error);
}

function failPermanently(attempt: Attempt, facts: Facts, error: PermanentError): never {
  attempt.report("failed");
  const failure = permanentFailure(attempt.log.child({ ...facts, err: error }), reasonOf(error));
  throw withStack(failure, facts, error);
}

async function waitAndRepeat(
  attempt: Attempt,
  facts: Facts,
  { error, waitMs }: { error: unknown; waitMs: number },
): Promise<never> {
  attempt.report("waited");
  attempt.log.warn({ ...facts, waitMs }, `waits: ${reasonOf(error)}`);
  throw await delayRun(attempt, waitMs);
}

function leaveToLaterTick(attempt: Attempt, facts: Facts, error: ThrottledError): void {
  attempt.report("waited");
  attempt.log.info(facts, `leaves it to a later tick: ${reasonOf(error)}`);
}

function retryOrGiveUp(attempt: Attempt, facts: Facts, error: unknown): never {
  const { isTick, log } = attempt;
  const reason = reasonOf(error);
  const isLast = isLastAttempt(attempt);
  attempt.report(isLast ? "failed" : "retried");
  const next = `failed, and the next tick tries again: ${reason}`;
  if (isTick && isOutage(error)) log[outageLevel(reason)](facts, next);
  else if (isTick) log.warn({ ...facts, err: error }, next);
  else if (isLast) log.error({ ...facts, err: error }, `failed, and was the last attempt: ${reason}`);
  else log.warn({ ...facts, err: error }, `failed, and is tried again: ${reason}`);
  throw withStack(markLogged(new Error(reason, { cause: error })), facts, error);
}

function permanentFailure(log: Log, reason: string): Error {
  log.error(`failed permanently: ${reason}`);
  return markLogged(new UnrecoverableError(reason));
}

function markLogged(error: Error): Error {
  logged.add(error);
  return error;
}

/** Sets the stack that BullMQ keeps with the run: when the attempt failed, and the stacks of its error and causes. */
function withStack(failure: Error, { attempt, ms }: Facts, error: unknown): Error {
  const head = `attempt ${attempt} failed at ${new Date().toISOString()} after ${ms} ms`;
  failure.stack = hideSecretsIn(`${head}\n${stackOf(error)}`.slice(0, LONGEST_STACK).toWellFormed());
  return failure;
}

/**
 * The delay before the next attempt of a run that failed `attempt` times, in milliseconds: a random share of `firstMs`,
 * doubled with each failure up to `maxMs` (full jitter, so that runs that failed together do not return together).
 * `chance` is from [0, 1).
 *
 * @example
 * retryDelayMs({ attempts: 5, firstMs: 1000, maxMs: 5000 }, 1, 0.5); // => 500
 * retryDelayMs({ attempts: 5, firstMs: 1000, maxMs: 5000 }, 4, 0.5); // => 2500
 */
export function retryDelayMs(retry: Retry, attempt: number, chance: number): number {
  return Math.floor(chance * Math.min(retry.maxMs, retry.firstMs * 2 ** (attempt - 1)));
}

function didNothing(counts: Counts): boolean {
  return Object.entries(counts).every(([name, count]) => NO_RESULTS.has(name) || count === 0);
}

/** Milliseconds to wait without spending an attempt; null if the attempt failed. */
function waitOf(error: unknown): number | null {
  if (error instanceof ThrottledError) return error.waitMs;
  const { least, most } = OUTAGE_WAIT_MS;
  return isOutage(error) ? least + Math.random() * (most - least) : null;
}

async function delayRun({ queued, token }: Attempt, waitMs: number): Promise<DelayedError> {
  await queued.moveToDelayed(Date.now() + Math.round(waitMs), token);
  return new DelayedError();
}
