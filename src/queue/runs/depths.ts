import type { Job as QueuedRun } from "bullmq";
import type { Queues } from "../queues.ts";

/** The states of runs. */
const STATES = ["waiting", "active", "delayed", "failed"] as const;

/** The number of runs of a queue in a state. */
export interface Depth {
  queue: string;
  state: (typeof STATES)[number];
  runs: number;
  /** When the oldest of them was added or started, milliseconds since 1970; null if there is none, or for other states. */
  oldestAtMs: number | null;
}

/**
 * Counts the runs of every queue with three short commands each, however many there are. Queues whose node is unavailable
 * are left out.
 * @throws Error if Redis is unavailable, without waiting.
 */
export async function readDepths(queues: Queues): Promise<Depth[]> {
  if (queues.redis.status !== "ready") throw new Error("Redis is away");
  const found = await Promise.allSettled(
    queues.jobs.map(async ({ name: queue }) => {
      const opened = queues.get(queue);
      const [counts, waiting, active] = await Promise.all([
        opened.getJobCounts("prioritized", ...STATES),
        opened.getWaiting(0, 0),
        opened.getActive(0, 0),
      ]);
      const oldest: Partial<Record<string, QueuedRun>> = { waiting: waiting[0], active: active[0] };
      return STATES.map((state): Depth => {
        const runs = (counts[state] ?? 0) + (state === "waiting" ? (counts["prioritized"] ?? 0) : 0);
        const run = oldest[state];
        return { queue, state, runs, oldestAtMs: run?.processedOn ?? run?.timestamp ?? null };
      });
    }),
  );
  // in a Redis Cluster one node can be unavailable, with its queues only
  const known = found.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const [failure] = found.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
  if (known.length === 0 && failure !== undefined) throw failure;
  return known.flat();
}
