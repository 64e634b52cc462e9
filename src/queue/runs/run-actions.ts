import type { Job as QueuedRun } from "bullmq";
import type { Queues } from "../queues.ts";
import { isRedisUnavailable } from "../redis.ts";
import { MOST_RUNS_READ, type RunState, tokenOf } from "./runs.ts";

const AT_ONCE = 50;

/** How many of the named runs an action reached, and how many have changed since or are gone. */
export interface RunsReached {
  done: number;
  changed: number;
}

const OUTCOMES = {
  retry: ["is retried", "are retried"],
  promote: ["starts now", "start now"],
  discard: ["is discarded", "are discarded"],
} as const;

/** What an action did to runs of a queue, as a sentence for the person who chose them. */
export function describeReached(act: keyof typeof OUTCOMES, queue: string, { done, changed }: RunsReached): string {
  const [one, several] = OUTCOMES[act];
  const left = changed === 0 ? "" : `; ${changed} had changed and were left as they are`;
  return `${done} ${done === 1 ? "run" : "runs"} of ${queue} ${done === 1 ? one : several}${left}`;
}

/** The tokens of the runs that an action is about, and the state in which they were seen. */
export interface ChosenRuns {
  queue: string;
  state: RunState;
  tokens: readonly string[];
}

/** The number of run ids that an entry of the audit log names. */
const IDS_NOTED = 100;

/** What the audit log records of chosen runs. It is recorded first, since Redis and PostgreSQL share no transaction. */
export function runsEntry({ queue, state, tokens }: ChosenRuns) {
  const ids = tokens.map((token) => token.slice(0, token.lastIndexOf("@")));
  return { target: `queue ${queue}`, after: { state, runs: ids.length, ids: ids.slice(0, IDS_NOTED) } };
}

/** Puts failed runs back to work with all their attempts, unless they have changed since they were seen. */
export async function retryRuns(queues: Queues, queue: string, tokens: readonly string[]): Promise<RunsReached> {
  return reach(queues, { queue, state: "failed", tokens }, (run) =>
    run.retry("failed", { resetAttemptsMade: true, resetAttemptsStarted: true }),
  );
}

/**
 * Removes runs that do not run now, unless they have changed since they were seen. Runs of a schedule stay. If a job's
 * sweep finds the work undone, it is queued again.
 */
export async function discardRuns(queues: Queues, chosen: ChosenRuns): Promise<RunsReached> {
  return reach(
    queues,
    chosen,
    (run) => run.remove(),
    (run) => run.repeatJobKey === undefined,
  );
}

/** Makes delayed runs start now, unless they have changed since they were seen. A schedule keeps its next start. */
export async function promoteRuns(queues: Queues, queue: string, tokens: readonly string[]): Promise<RunsReached> {
  return reach(queues, { queue, state: "delayed", tokens }, (run) => run.promote());
}

async function reach(
  queues: Queues,
  { queue, state, tokens }: ChosenRuns,
  work: (run: QueuedRun) => Promise<unknown>,
  isAllowed: (run: QueuedRun) => boolean = () => true,
): Promise<RunsReached> {
  const wanted = new Set(tokens);
  const found = await queues.get(queue).getJobs([state], 0, MOST_RUNS_READ - 1, state !== "failed");
  const chosen = found.filter((run) => wanted.has(tokenOf(run, state)) && isAllowed(run));
  let done = 0;
  for (let from = 0; from < chosen.length; from += AT_ONCE) {
    const ended = await Promise.allSettled(chosen.slice(from, from + AT_ONCE).map(work));
    done += ended.filter(({ status }) => status === "fulfilled").length;
    // another person may have reached it first; if Redis does not respond, nothing more is sent
    for (const one of ended) {
      if (one.status === "rejected" && (queues.redis.status !== "ready" || isRedisUnavailable(one.reason)))
        throw one.reason;
    }
  }
  return { done, changed: tokens.length - done };
}
