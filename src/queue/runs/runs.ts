import { reasonOf } from "../../errors.ts";
import type { Job as QueuedRun } from "bullmq";
import { withoutSecrets } from "../../secrets.ts";
import type { Queues } from "../queues.ts";

/** The states in which a queue holds runs. A run that is done is removed: its counts are in the log. */
export const RUN_STATES = ["waiting", "active", "delayed", "failed"] as const;
export type RunState = (typeof RUN_STATES)[number];

/** Runs that a search or an action reads: a queue keeps no more failed ones, see `openQueues`. */
export const MOST_RUNS_READ = 1_000;
/** BullMQ's order of delayed runs: the time when a run is due in milliseconds, times this. */
const DUE_FACTOR = 0x1000;

/** One run of a job, without secrets. */
export interface Run {
  queue: string;
  id: string;
  state: RunState;
  payload: unknown;
  /** Attempts that ended. */
  attempts: number;
  addedAt: Date;
  /** The start of its newest attempt; null before the first. */
  startedAt: Date | null;
  /** When a delayed run is due; null in any other state. */
  dueAt: Date | null;
  failedAt: Date | null;
  /** Why its newest attempt failed; empty if none did. */
  reason: string;
  /** A run of a schedule: without it the schedule would stop, so it cannot be discarded. */
  isScheduled: boolean;
  /** Identifies the run in this state: after another attempt it has another token. */
  token: string;
}

/** One run with its options, times and failed attempts, without secrets. */
export interface RunDetail extends Omit<Run, "state"> {
  /** Besides a {@link RunState}, a state of BullMQ that no job of ours uses. */
  state: string;
  options: object;
  finishedAt: Date | null;
  /** The failed attempts that are kept, oldest first: the time, the error and its stack. */
  failures: string[];
  /** How often its worker died. */
  stalls: number;
  /** The worker of its newest attempt, as BullMQ names it; null if it does not. */
  worker: string | null;
}

/**
 * Lists runs of a queue in a state: active and waiting ones in the order in which they start, delayed ones in the order
 * in which they are due, failed ones newest first. `from` counts from 0.
 * @throws UsageError if there is no such queue.
 */
export async function listRuns(
  queues: Queues,
  queue: string,
  { state, from, limit }: { state: RunState; from: number; limit: number },
): Promise<Run[]> {
  const found = await queues.get(queue).getJobs([state], from, from + limit - 1, state !== "failed");
  const due = state === "delayed" ? await readDueTimes(queues, queue, found) : new Map<string, number>();
  return found.map((run) => runOf(queue, run, state, due.get(run.id ?? "") ?? null));
}

/**
 * The run with an id, from any text; null if the queue has none. BullMQ keeps runs next to its own keys, such as `events`
 * and `meta`, which are none.
 */
export async function getRun(queues: Queues, queue: string, id: string): Promise<QueuedRun | null> {
  try {
    const run = await queues.get(queue).getJob(id);
    return run !== undefined && Number.isFinite(run.timestamp) ? run : null;
  } catch (error) {
    if (reasonOf(error).startsWith("WRONGTYPE")) return null;
    throw error;
  }
}

/**
 * Finds a run with its failed attempts; null if the queue has none with this id.
 * @throws UsageError if there is no such queue.
 */
export async function findRun(queues: Queues, queue: string, id: string): Promise<RunDetail | null> {
  const run = await getRun(queues, queue, id);
  if (run === null) return null;
  const [state, due] = await Promise.all([run.getState(), readDueTimes(queues, queue, [run])]);
  const isDue = state === "delayed" ? (due.get(id) ?? null) : null;
  return {
    ...runOf(queue, run, isRunState(state) ? state : "waiting", isDue),
    state,
    options: withoutSecrets(run.opts) as object,
    finishedAt: dateOf(run.finishedOn),
    failures: withoutSecrets(run.stacktrace ?? []) as string[],
    stalls: run.stalledCounter,
    worker: run.processedBy ?? null,
  };
}

/** Identifies a run in its state; the token changes with every attempt. */
export function tokenOf(run: QueuedRun, state: RunState): string {
  const mark = state === "failed" ? (run.finishedOn ?? 0) : run.attemptsStarted;
  return `${run.id ?? ""}@${mark}`;
}

function runOf(queue: string, run: QueuedRun, state: RunState, due: number | null): Run {
  return {
    queue,
    id: run.id ?? "",
    state,
    payload: withoutSecrets(run.data),
    attempts: run.attemptsMade,
    addedAt: new Date(run.timestamp),
    startedAt: dateOf(run.processedOn),
    dueAt: dateOf(due),
    failedAt: dateOf(state === "failed" ? run.finishedOn : undefined),
    reason: withoutSecrets(run.failedReason ?? "") as string,
    isScheduled: run.repeatJobKey !== undefined,
    token: tokenOf(run, state),
  };
}

/** When delayed runs are due, in milliseconds since 1970, by id. BullMQ keeps it only as the score of its set. */
async function readDueTimes(queues: Queues, queue: string, runs: readonly QueuedRun[]): Promise<Map<string, number>> {
  const ids = runs.flatMap(({ id }) => (id === undefined ? [] : [id]));
  if (ids.length === 0) return new Map();
  const scores = await queues.redis.zmscore(queues.get(queue).toKey("delayed"), ...ids);
  return new Map(
    ids.flatMap((id, at) => {
      const score = scores[at] ?? null;
      return score === null ? [] : [[id, Math.floor(Number(score) / DUE_FACTOR)] as const];
    }),
  );
}

function isRunState(state: string): state is RunState {
  return RUN_STATES.some((one) => one === state);
}

function dateOf(ms: number | null | undefined): Date | null {
  return ms === null || ms === undefined ? null : new Date(ms);
}
