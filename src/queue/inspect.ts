import type { Sql } from "../db/client.ts";
import { UsageError } from "../errors.ts";
import type { Queues } from "./queues.ts";
import { deletePause, listPauses, type Pause, savePause } from "./store.ts";

/** A queue as an operator sees it. */
export interface QueueState {
  queue: string;
  waiting: number;
  active: number;
  delayed: number;
  failed: number;
  schedules: number;
  /** Since when the oldest waiting run waits; null where none does. */
  waitingSince: Date | null;
  /** Who paused it, when and why; null where it goes on. */
  paused: Omit<Pause, "queue"> | null;
}

/** What every queue holds now. */
export async function listQueues(queues: Queues, sql: Sql): Promise<QueueState[]> {
  const pauses = new Map((await listPauses(sql)).map(({ queue, ...pause }) => [queue, pause]));
  return Promise.all(
    queues.jobs.map(async ({ name }) => {
      const queue = queues.get(name);
      const counts = await queue.getJobCounts("waiting", "prioritized", "active", "delayed", "failed");
      const [oldest] = await queue.getWaiting(0, 0);
      return {
        queue: name,
        waiting: (counts["waiting"] ?? 0) + (counts["prioritized"] ?? 0),
        active: counts["active"] ?? 0,
        delayed: counts["delayed"] ?? 0,
        failed: counts["failed"] ?? 0,
        schedules: await queue.getJobSchedulersCount(),
        waitingSince: oldest === undefined ? null : new Date(oldest.timestamp),
        paused: pauses.get(name) ?? null,
      };
    }),
  );
}

/** A run that failed for good. */
export interface FailedRun {
  queue: string;
  id: string;
  payload: unknown;
  reason: string;
  attempts: number;
  failedAt: Date | null;
}

/** The newest failed runs, of one queue or of all, newest first. Runs of a schedule are not kept. */
export async function listFailed(
  queues: Queues,
  options: { queue?: string | undefined; limit: number },
): Promise<FailedRun[]> {
  const names = options.queue === undefined ? queues.jobs.map(({ name }) => name) : [options.queue];
  const found = await Promise.all(
    names.map(async (name) => {
      const runs = await queues.get(name).getFailed(0, options.limit - 1);
      return runs.map((run): FailedRun => {
        return {
          queue: name,
          id: run.id ?? "",
          payload: run.data as unknown,
          reason: run.failedReason,
          attempts: run.attemptsMade,
          failedAt: run.finishedOn === undefined ? null : new Date(run.finishedOn),
        };
      });
    }),
  );
  return found
    .flat()
    .toSorted((a, b) => Number(b.failedAt) - Number(a.failedAt))
    .slice(0, options.limit);
}

/**
 * Puts failed runs of a queue back to work with all their attempts: the one with this id, or all (null). Gives how many.
 * @throws UsageError where the queue has no failed run with this id.
 */
export async function retryFailed(queues: Queues, queue: string, id: string | null): Promise<number> {
  const failed = await queues.get(queue).getFailed();
  const chosen = id === null ? failed : failed.filter((run) => run.id === id);
  if (id !== null && chosen.length === 0) {
    throw new UsageError(`queue ${queue} has no failed run ${id}; \`roundhouse queue failed\` lists them`);
  }
  for (const run of chosen) await run.retry("failed", { resetAttemptsMade: true, resetAttemptsStarted: true });
  return chosen.length;
}

/**
 * Pauses a queue everywhere: what runs goes on, nothing new begins. The row in PostgreSQL comes first: where Redis
 * cannot be told now, or forgets it, the reconciler tells it.
 */
export async function pauseQueue(
  sql: Sql,
  queues: Queues,
  pause: { queue: string; by: string; reason: string },
): Promise<void> {
  const queue = queues.get(pause.queue);
  await savePause(sql, pause);
  await queue.pause();
}

/** Lets a paused queue go on. */
export async function resumeQueue(sql: Sql, queues: Queues, name: string): Promise<void> {
  const queue = queues.get(name);
  await deletePause(sql, name);
  await queue.resume();
}
