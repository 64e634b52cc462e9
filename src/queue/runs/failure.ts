import { DelayedError, type Job as QueuedRun, UnrecoverableError } from "bullmq";
import type { Sql } from "../../db/client.ts";
import { isOutage } from "../../db/errors.ts";
import { PermanentError, reasonOf, stackOf, ThrottledError } from "../../errors.ts";
import { createRepeatLevel, type Log } from "../../log.ts";
import { hideSecretsIn } from "../../secrets.ts";
import type { Counts, Job, Retry } from "../job.ts";
import type { RunOutcome } from "../report.ts";

/** BullMQ retries a tick that kills its process without limit. */
const MAX_CRASHES = 3;
const LONGEST_STACK = 8_000;
const OUTAGE_WAIT_MS = { least: 1_000, most: 5_000 };

/** What every step of an attempt needs. */
export interface Attempt {
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
export interface Facts {
  attempt: number;
  ms: number;
  traces?: string[];
}

/** While PostgreSQL is away, ticks of all houses fail with the same reason. */
const outageLevel = createRepeatLevel();

/** Errors whose failure has a log line. */
const logged = new WeakSet<Error>();

/** Whether the failure with this error has been logged. */
export function isLogged(error: Error): boolean {
  return logged.has(error);
}

/** @throws UnrecoverableError if the run killed its worker process too often; the job reports it first. */
export async function requireFewCrashes(attempt: Attempt, payload: unknown, sql: Sql): Promise<void> {
  const { queued } = attempt;
  if (queued.repeatJobKey === undefined || queued.stalledCounter < MAX_CRASHES) return;
  const reason = `its process died ${queued.stalledCounter} times while it ran`;
  await giveUp(attempt, payload, sql, new Error(reason));
  attempt.report("failed");
  throw permanentFailure(attempt.log, reason);
}

/** Whether the run is not tried again after this error. */
export function isGivenUp(attempt: Attempt, error: unknown): boolean {
  if (error instanceof PermanentError) return true;
  return waitOf(error) === null && isLastAttempt(attempt);
}

/** Lets the job report its failure. Never throws: the failure is also logged. */
export async function giveUp({ job, log }: Attempt, payload: unknown, sql: Sql, error: unknown): Promise<void> {
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
export async function fail(attempt: Attempt, facts: Facts, error: unknown): Promise<void> {
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

/** Logs why a run fails permanently, and returns the error by which BullMQ knows it. */
export function permanentFailure(log: Log, reason: string): Error {
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

/** Milliseconds to wait without spending an attempt; null if the attempt failed. */
function waitOf(error: unknown): number | null {
  if (error instanceof ThrottledError) return error.waitMs;
  const { least, most } = OUTAGE_WAIT_MS;
  return isOutage(error) ? least + Math.random() * (most - least) : null;
}

/** Delays a run without spending an attempt, and returns the error by which BullMQ knows it. */
export async function delayRun({ queued, token }: Attempt, waitMs: number): Promise<DelayedError> {
  await queued.moveToDelayed(Date.now() + Math.round(waitMs), token);
  return new DelayedError();
}
