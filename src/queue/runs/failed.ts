import { UsageError } from "../../errors.ts";
import type { Queues } from "../queues.ts";
import { listRuns, MOST_RUNS_READ, type Run } from "./runs.ts";

const LONGEST_GROUP = 200;

/** Failed runs with the same kind of reason. */
export interface FailureGroup {
  reason: string;
  runs: number;
  oldest: Date | null;
  newest: Date | null;
}

/** Lists the newest failed runs of one queue or of all, newest first. Failed runs of a schedule are not kept. */
export async function listFailed(
  queues: Queues,
  { queue, limit }: { queue?: string | undefined; limit: number },
): Promise<Run[]> {
  const names = queue === undefined ? queues.jobs.map(({ name }) => name) : [queue];
  const found = await Promise.all(names.map((name) => listRuns(queues, name, { state: "failed", from: 0, limit })));
  return found
    .flat()
    .toSorted((a, b) => Number(b.failedAt) - Number(a.failedAt))
    .slice(0, limit);
}

/** Lists all failed runs of a queue, newest first: it keeps a thousand at most. */
export async function allFailed(queues: Queues, queue: string): Promise<Run[]> {
  return listFailed(queues, { queue, limit: MOST_RUNS_READ });
}

/** Counts failed runs by reason, the most frequent first. */
export function groupFailures(runs: readonly Run[]): FailureGroup[] {
  const groups = Map.groupBy(runs, ({ reason }) => groupOf(reason));
  return [...groups]
    .map(([reason, members]) => {
      const times = members.flatMap(({ failedAt }) => (failedAt === null ? [] : [failedAt.getTime()]));
      const [oldest, newest] = [Math.min(...times), Math.max(...times)];
      const known = times.length > 0;
      return {
        reason,
        runs: members.length,
        oldest: known ? new Date(oldest) : null,
        newest: known ? new Date(newest) : null,
      };
    })
    .toSorted((a, b) => b.runs - a.runs || a.reason.localeCompare(b.reason));
}

/**
 * The common form of reasons that differ only in numbers.
 *
 * @example
 * groupOf("took longer than 70000 ms"); // => "took longer than # ms"
 */
export function groupOf(reason: string): string {
  return reason.replaceAll(/\d+/g, "#").slice(0, LONGEST_GROUP).toWellFormed();
}

/**
 * Finds the failed run of a queue with this id, or all of its failed runs (null).
 * @throws UsageError if the queue has no failed run with this id, or there is no such queue.
 */
export async function chooseFailed(queues: Queues, queue: string, id: string | null): Promise<Run[]> {
  const failed = await allFailed(queues, queue);
  const chosen = id === null ? failed : failed.filter((run) => run.id === id);
  if (id === null || chosen.length > 0) return chosen;
  throw new UsageError(`queue ${queue} has no failed run ${id}; \`roundhouse queue failed\` lists them`);
}
