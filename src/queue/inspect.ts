import type { Queues } from "./queues.ts";
import type { Pause } from "./store.ts";

export { pauseFacts, pauseQueue, resumeQueue, type ControlOutcome } from "./controls.ts";
export { listSchedules, readRates, type ScheduleState } from "./drift.ts";
export {
  allFailed,
  chooseFailed,
  discardRuns,
  type FailedRun,
  type FailureGroup,
  groupFailures,
  groupOf,
  listFailed,
  retryRuns,
} from "./failed.ts";
export type { Queues } from "./queues.ts";
export { isRedisTrouble } from "./redis.ts";
export { findHeartbeat, listPauses, listWorkers, type Pause, type ReportedWorker } from "./store.ts";

/** A queue as an operator sees it. */
export interface QueueState {
  queue: string;
  waiting: number;
  active: number;
  delayed: number;
  failed: number;
  schedules: number;
  /** Since when the oldest waiting run waits; null if none does. */
  waitingSince: Date | null;
  /** Since when the longest active run is at work; null if none is. */
  activeSince: Date | null;
  /** Who paused it, when, why and until when; null if it continues. */
  paused: Omit<Pause, "queue"> | null;
}

/** What every queue holds now, of Redis alone; `listed` are the pauses of {@link listPauses}. */
export async function listQueues(queues: Queues, listed: readonly Pause[]): Promise<QueueState[]> {
  const pauses = new Map(listed.map(({ queue, ...pause }) => [queue, pause]));
  return Promise.all(
    queues.jobs.map(async ({ name }) => {
      const queue = queues.get(name);
      const [counts, [waiting], active, schedules] = await Promise.all([
        queue.getJobCounts("waiting", "prioritized", "active", "delayed", "failed"),
        queue.getWaiting(0, 0),
        queue.getActive(),
        queue.getJobSchedulersCount(),
      ]);
      const begun = active.flatMap(({ processedOn }) => (processedOn === undefined ? [] : [processedOn]));
      return {
        queue: name,
        waiting: (counts["waiting"] ?? 0) + (counts["prioritized"] ?? 0),
        active: counts["active"] ?? 0,
        delayed: counts["delayed"] ?? 0,
        failed: counts["failed"] ?? 0,
        schedules,
        waitingSince: waiting === undefined ? null : new Date(waiting.timestamp),
        activeSince: begun.length === 0 ? null : new Date(Math.min(...begun)),
        paused: pauses.get(name) ?? null,
      };
    }),
  );
}
