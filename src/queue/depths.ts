import type { Job as QueuedRun } from "bullmq";
import type { Queues } from "./queues.ts";

/** States of runs that wait for something, or continue. */
const STATES = ["waiting", "active", "delayed", "failed"] as const;

/** How many runs a queue holds in a state. */
export interface Depth {
  queue: string;
  state: (typeof STATES)[number];
  runs: number;
  /** Since when the oldest of them waits or runs, milliseconds since 1970; null if there is none, or it does not matter. */
  oldestAtMs: number | null;
}

/**
 * What every queue holds: three short commands each, however deep it is. Queues that cannot be asked are left out.
 * @throws Error where Redis is away, at once.
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
  // of a Redis Cluster one node may be away, and with it its queues alone
  const known = found.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const [failure] = found.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
  if (known.length === 0 && failure !== undefined) throw failure;
  return known.flat();
}
