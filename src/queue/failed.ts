import type { Job as QueuedRun } from "bullmq";
import { UsageError } from "../errors.ts";
import type { Queues } from "./queues.ts";
import { isRedisTrouble } from "./redis.ts";

/** A queue keeps no more failed runs than these, see `openQueues`. */
const MOST_LOOKED_AT = 1_000;
const LONGEST_GROUP = 200;
const AT_ONCE = 50;

/** A run that failed permanently. */
export interface FailedRun {
  queue: string;
  id: string;
  payload: unknown;
  reason: string;
  attempts: number;
  failedAt: Date | null;
  /** Names this failure of this run: one that failed again since has another. */
  token: string;
}

/** Failed runs of one kind of reason. */
export interface FailureGroup {
  reason: string;
  runs: number;
  oldest: Date | null;
  newest: Date | null;
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
      return runs.map((run) => failedRun(name, run));
    }),
  );
  return found
    .flat()
    .toSorted((a, b) => Number(b.failedAt) - Number(a.failedAt))
    .slice(0, options.limit);
}

/** All failed runs of a queue, newest first: it keeps a thousand at most. */
export async function allFailed(queues: Queues, queue: string): Promise<FailedRun[]> {
  return listFailed(queues, { queue, limit: MOST_LOOKED_AT });
}

/** Failed runs counted by reason, the most first. */
export function groupFailures(runs: readonly FailedRun[]): FailureGroup[] {
  const groups = Map.groupBy(runs, ({ reason }) => groupOf(reason));
  return [...groups]
    .map(([reason, own]) => {
      const times = own.flatMap(({ failedAt }) => (failedAt === null ? [] : [failedAt.getTime()]));
      const [oldest, newest] = [Math.min(...times), Math.max(...times)];
      const known = times.length > 0;
      return {
        reason,
        runs: own.length,
        oldest: known ? new Date(oldest) : null,
        newest: known ? new Date(newest) : null,
      };
    })
    .toSorted((a, b) => b.runs - a.runs || a.reason.localeCompare(b.reason));
}

/**
 * What reasons that differ in numbers alone have in common.
 *
 * @example
 * groupOf("took longer than 70000 ms"); // => "took longer than # ms"
 */
export function groupOf(reason: string): string {
  return reason.replaceAll(/\d+/g, "#").slice(0, LONGEST_GROUP).toWellFormed();
}

/** Does something with every failed run that is named and has not changed since; gives how many, and how many had. */
async function act(
  queues: Queues,
  queue: string,
  tokens: readonly string[],
  work: (run: QueuedRun) => Promise<unknown>,
): Promise<{ done: number; changed: number }> {
  const wanted = new Set(tokens);
  const failed = await queues.get(queue).getFailed(0, MOST_LOOKED_AT - 1);
  const chosen = failed.filter((run) => wanted.has(tokenOf(run)));
  let done = 0;
  for (let from = 0; from < chosen.length; from += AT_ONCE) {
    const ended = await Promise.allSettled(chosen.slice(from, from + AT_ONCE).map(work));
    done += ended.filter(({ status }) => status === "fulfilled").length;
    // someone else may have retried or discarded it in this moment; while Redis does not answer nothing continues
    for (const one of ended) {
      if (one.status === "rejected" && (queues.redis.status !== "ready" || isRedisTrouble(one.reason)))
        throw one.reason;
    }
  }
  return { done, changed: tokens.length - done };
}

/** Puts failed runs back to work with all their attempts; only those that are still as they were seen. */
export async function retryRuns(queues: Queues, queue: string, tokens: readonly string[]) {
  return act(queues, queue, tokens, (run) =>
    run.retry("failed", { resetAttemptsMade: true, resetAttemptsStarted: true }),
  );
}

/** Forgets failed runs; only those that are still as they were seen. What a job's sweep finds undone comes again. */
export async function discardRuns(queues: Queues, queue: string, tokens: readonly string[]) {
  return act(queues, queue, tokens, (run) => run.remove());
}

/**
 * The failed runs of a queue that someone means: the one with this id, or all (null).
 * @throws UsageError where the queue has no failed run with this id, or there is no such queue.
 */
export async function chooseFailed(queues: Queues, queue: string, id: string | null): Promise<FailedRun[]> {
  const failed = await allFailed(queues, queue);
  const chosen = id === null ? failed : failed.filter((run) => run.id === id);
  if (id === null || chosen.length > 0) return chosen;
  throw new UsageError(`queue ${queue} has no failed run ${id}; \`roundhouse queue failed\` lists them`);
}

function failedRun(queue: string, run: QueuedRun): FailedRun {
  return {
    queue,
    id: run.id ?? "",
    payload: run.data as unknown,
    reason: run.failedReason,
    attempts: run.attemptsMade,
    failedAt: run.finishedOn === undefined ? null : new Date(run.finishedOn),
    token: tokenOf(run),
  };
}

function tokenOf(run: QueuedRun): string {
  return `${run.id ?? ""}@${run.finishedOn ?? 0}`;
}
