import type { Queues } from "../queues.ts";
import type { Pause } from "../store.ts";

export { pauseQueue, resumeQueue } from "../pauses.ts";
export { type Rates, readRates } from "./rates.ts";
export { allFailed, chooseFailed, type FailureGroup, groupFailures, groupOf, listFailed } from "./failed.ts";
export type { Queues } from "../queues.ts";
export { readDepths } from "./depths.ts";
export { isRedisUnavailable } from "../redis.ts";
export { listSchedules, type ScheduleState } from "../schedules/schedule-list.ts";
export { describeReached, discardRuns, promoteRuns, retryRuns, runsEntry, type RunsReached } from "./run-actions.ts";
export {
  findRun,
  getRun,
  listRuns,
  MOST_RUNS_READ,
  type Run,
  RUN_STATES,
  type RunDetail,
  type RunState,
} from "./runs.ts";
export { findHeartbeat, listPauses, listWorkers, type Pause, type ReportedWorker } from "../store.ts";

/** The content of a queue. */
export interface QueueState {
  queue: string;
  waiting: number;
  active: number;
  delayed: number;
  failed: number;
  schedules: number;
  /** When the oldest waiting run was added; null if none waits. */
  waitingSince: Date | null;
  /** When the longest active run started; null if none is active. */
  activeSince: Date | null;
  /** The pause of the queue; null if it is not paused. */
  paused: Omit<Pause, "queue"> | null;
}

/** Reads the content of every queue from Redis; `pauses` are those of {@link listPauses}. */
export async function listQueues(queues: Queues, pauses: readonly Pause[]): Promise<QueueState[]> {
  return Promise.all(queues.jobs.map(({ name }) => readQueue(queues, name, pauses)));
}

/**
 * Reads the content of one queue from Redis; `pauses` are those of {@link listPauses}.
 * @throws UsageError if there is no such queue.
 */
export async function readQueue(queues: Queues, name: string, pauses: readonly Pause[]): Promise<QueueState> {
  const queue = queues.get(name);
  const [counts, [waiting], active, schedules] = await Promise.all([
    queue.getJobCounts("waiting", "prioritized", "active", "delayed", "failed"),
    queue.getWaiting(0, 0),
    queue.getActive(),
    queue.getJobSchedulersCount(),
  ]);
  const started = active.flatMap(({ processedOn }) => (processedOn === undefined ? [] : [processedOn]));
  return {
    queue: name,
    waiting: (counts["waiting"] ?? 0) + (counts["prioritized"] ?? 0),
    active: counts["active"] ?? 0,
    delayed: counts["delayed"] ?? 0,
    failed: counts["failed"] ?? 0,
    schedules,
    waitingSince: waiting === undefined ? null : new Date(waiting.timestamp),
    activeSince: started.length === 0 ? null : new Date(Math.min(...started)),
    paused: pauseOf(name, pauses),
  };
}

function pauseOf(name: string, pauses: readonly Pause[]): QueueState["paused"] {
  const found = pauses.find(({ queue }) => queue === name);
  if (found === undefined) return null;
  const { queue: _queue, ...pause } = found;
  return pause;
}
