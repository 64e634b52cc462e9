import { getRun, isRedisUnavailable, type Queues } from "../../queue/runs/inspect.ts";
import type { FoundRow } from "./search-store.ts";
import type { SearchTerm } from "./term.ts";

const NO_REDIS = "Queue runs were not searched: Redis does not respond.";

/** Jobs that wait, run or failed, by their id in any queue; with the reason if Redis cannot be asked. */
export async function findJobs(
  queues: Queues | null,
  { text, id, kind }: SearchTerm,
  limit: number,
): Promise<{ rows: (FoundRow & { href: string })[]; problem: string | null }> {
  const none = { rows: [], problem: null };
  if (queues === null || (kind !== null && kind !== "job")) return none;
  const jobId = kind === "job" ? String(id) : text;
  if (/\s/.test(jobId)) return none;
  if (queues.redis.status !== "ready") return { rows: [], problem: NO_REDIS };
  try {
    const found = await Promise.all(queues.jobs.map(({ name }) => findJob(queues, name, jobId)));
    return { rows: found.flatMap((row) => row ?? []).slice(0, limit), problem: null };
  } catch (error) {
    if (isRedisUnavailable(error)) return { rows: [], problem: NO_REDIS };
    throw error;
  }
}

async function findJob(queues: Queues, queue: string, id: string): Promise<(FoundRow & { href: string }) | null> {
  const job = await getRun(queues, queue, id);
  if (job === null) return null;
  const state = await job.getState();
  const href = `/ops/queues/${queue}/runs/${encodeURIComponent(id)}`;
  return { key: id, label: `Run ${id}`, detail: `${queue}, ${state}`, isExact: true, href };
}
