import type { z } from "zod";
import type { Sql } from "../db/client.ts";
import type { HouseClient } from "../houses/polling/client.ts";
import type { Log } from "../log.ts";
import type { Passes } from "../pass/passes.ts";
import type { Settings, Variables } from "../config/environment.ts";

/** Connections of a worker process apart from those that most jobs share. */
export interface WorkerPools {
  /** Polling, and the worker's own heartbeat and lease: nothing else may keep them waiting. */
  polling: Sql;
  /** Replays, sums over days, clean-up: statements that take seconds. */
  long: Sql;
}

/** What every job is handed besides its payload. */
export interface JobContext {
  sql: Sql;
  /** Connections, states and writer of passes, one for all jobs of a process. */
  passes: Passes;
  http: HouseClient;
  settings: Settings;
  variables: Variables;
  log: Log;
  /** Aborted when the job's time is up, the job is cancelled or the worker stops. */
  signal: AbortSignal;
  /** Nudges another job; losing the nudge is harmless, since the sweep finds the work again. */
  enqueue: <Next>(next: Job<Next>, payload: Next) => Promise<void>;
  /** Names the payloads that the run is about, by when they were received, for its line in the log: see {@link createTraces}. */
  follow: (receivedAt: Iterable<string | null>) => void;
  /** Tells API processes that these tables changed, or any: one NOTIFY per 50 ms at most. Call after the commit. */
  published: (tableIds?: readonly number[]) => void;
}

/** What schedules and sweeps may use: they only read. */
export interface SweepContext {
  sql: Sql;
  settings: Settings;
}

/** One repeated start of a job: every so many milliseconds at an offset, or by a cron pattern in UTC. */
export type Schedule<Payload> = { payload: Payload } & ({ everyMs: number; offsetMs: number } | { cron: string });

/** How a failed run is tried again: `attempts` in all, waiting `firstMs` doubled each time up to `maxMs`, with jitter. */
export interface Retry {
  attempts: number;
  firstMs: number;
  maxMs: number;
}

/** What a run did, as counts: the log line and the operators' numbers. */
export type Counts = Record<string, number>;

/** One kind of work: everything the queue core must know about it, in one object. */
export interface Job<Payload> {
  /** The queue's name. */
  name: string;
  payload: z.ZodType<Payload>;
  /** What makes two payloads the same work: at most one runs and one more waits. */
  key(payload: Payload): string;
  /** Repeated starts, derived from the database; null for work that is only asked for. */
  schedule: ((context: SweepContext) => Promise<Schedule<Payload>[]>) | null;
  /** Finds work left undone, whatever Redis forgot; null if the schedule alone is enough. */
  sweep: ((context: SweepContext) => Promise<Payload[]>) | null;
  /** Runs at once in one process. */
  concurrency: number;
  /** A run that takes longer is aborted and counts as failed. */
  timeoutMs: number;
  retry: Retry;
  /** Connections of their own, for runs that nothing may keep waiting or that keep others waiting; else the common ones. */
  pool?: keyof WorkerPools;
  run(payload: Payload, context: JobContext): Promise<Counts>;
}

/** Declares a job; only gives the object its type. */
export function job<Payload>(declaration: Job<Payload>): Job<Payload> {
  return declaration;
}
