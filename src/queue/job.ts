import type { z } from "zod";
import type { Sql } from "../db/client.ts";
import type { HouseClient } from "../houses/polling/client.ts";
import type { Log } from "../log.ts";
import type { Passes } from "../pass/passes.ts";
import type { Settings, Variables } from "../config/environment.ts";

/** The connections of a worker process that only some jobs use. */
export interface WorkerPools {
  /** For polling, and for the heartbeat and lease of the worker: nothing else may delay them. */
  polling: Sql;
  /** For replays, sums over days, clean-up: statements that take seconds. */
  long: Sql;
}

/** What a job receives besides its payload. */
export interface JobContext {
  sql: Sql;
  /** Connections, states and writer of passes; all jobs of a process share them. */
  passes: Passes;
  http: HouseClient;
  settings: Settings;
  variables: Variables;
  log: Log;
  /** Aborted when the job's time is up, the job is cancelled or the worker stops. */
  signal: AbortSignal;
  /** Aborted when the process takes no more work: a long run ends early and queues the rest. */
  ending: AbortSignal;
  /** Queues a run of another job. If it is lost, the sweep of that job finds the work. */
  enqueue: <Next>(next: Job<Next>, payload: Next) => Promise<void>;
  /** Adds payloads, by the time they were received, to the log line of the run: see {@link createTraces}. */
  follow: (receivedAt: Iterable<string | null>) => void;
  /** Notifies API processes that these tables changed, or any: at most one NOTIFY per 50 ms. Call it after the commit. */
  published: (tableIds?: readonly number[]) => void;
}

/** What schedules and sweeps receive: they only read. */
export interface SweepContext {
  sql: Sql;
  settings: Settings;
}

/** One schedule of a job: it starts at the multiples of an interval since 1970 in UTC, plus an offset. */
export interface Schedule<Payload> {
  payload: Payload;
  everyMs: number;
  offsetMs: number;
}

/** How a failed run is retried: `attempts` in all, after `firstMs`, doubled each time up to `maxMs`, with jitter. */
export interface Retry {
  attempts: number;
  firstMs: number;
  maxMs: number;
}

/** The result of a run as counts, for the log and the metrics. */
export type Counts = Record<string, number>;

/** One kind of work: everything that the queues need to know about it. */
export interface Job<Payload> {
  /** The queue's name. */
  name: string;
  payload: z.ZodType<Payload>;
  /** Payloads with the same key are the same work: at most one is active and one waits. */
  key(payload: Payload): string;
  /** Lists the schedules, derived from the database; null for work that is only queued on request. */
  schedule: ((context: SweepContext) => Promise<Schedule<Payload>[]>) | null;
  /** Finds undone work, also after Redis lost its data; null if the schedule is enough. */
  sweep: ((context: SweepContext) => Promise<Payload[]>) | null;
  /** Concurrent runs in one process. */
  concurrency: number;
  /** A longer run is aborted and counts as failed. */
  timeoutMs: number;
  retry: Retry;
  /**
   * For runs that last until about the next tick: the time until which one that begins at `now` lasts, in milliseconds since
   * the epoch. A tick that arrives before its end is queued again after it. Its runs have one attempt.
   */
  lasts?(payload: Payload, now: number): number;
  /** Separate connections, for runs that must not wait for others or that would delay others; otherwise the shared ones. */
  pool?: keyof WorkerPools;
  run(payload: Payload, context: JobContext): Promise<Counts>;
  /** Called when the last attempt of a run has failed. */
  gaveUp?(payload: Payload, reason: string, context: Pick<JobContext, "sql" | "log">): Promise<void>;
}

/** Declares a job: gives the object its type. */
export function job<Payload>(declaration: Job<Payload>): Job<Payload> {
  return declaration;
}
