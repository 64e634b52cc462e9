import { isRedisUnavailable, type Queues } from "../../queue/runs/inspect.ts";
import { PageError } from "../../frame/errors.ts";
import type { OpsParts } from "../contract.ts";

const SILENT =
  "Redis does not respond: the content of the queues is unknown now, and an action was done, in part or not at all. Check again when it is back; pauses are kept in PostgreSQL.";

/** Why the queues cannot be read now; null if they can. */
export function queuesProblem({ queues }: OpsParts): string | null {
  if (queues === null) return "this process was given no Redis (REDIS_URL), so it cannot read the queues";
  if (queues.redis.status === "ready") return null;
  return "Redis is unavailable: the content of the queues is unknown now; pauses are kept in PostgreSQL and are restored with it";
}

/**
 * Waits for a read of Redis or an action there.
 * @throws PageError 503 if Redis becomes unavailable or silent meanwhile.
 */
export async function orUnavailable<Value>(work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    if (isRedisUnavailable(error)) throw new PageError(503, SILENT, { "Retry-After": "5" });
    throw error;
  }
}

/** The queue in a path. */
export interface QueuePath {
  queue: string;
  queues: Queues;
}

/**
 * Finds the queue in a path. Redis may be unavailable: a pause works without it.
 * @throws PageError 503 if this process has no Redis, 404 if there is no such queue.
 */
export function requireQueue(parts: OpsParts, params: Readonly<Record<string, string>>): QueuePath {
  const { queues } = parts;
  if (queues === null) throw new PageError(503, queuesProblem(parts) ?? "there are no queues");
  const queue = params["queue"] ?? "";
  if (!queues.jobs.some(({ name }) => name === queue)) throw new PageError(404, `there is no queue ${queue}`);
  return { queue, queues };
}

/**
 * Finds the queue in a path, for reading its runs.
 * @throws PageError 503 if Redis is unavailable, 404 if there is no such queue.
 */
export function requireReadableQueue(parts: OpsParts, params: Readonly<Record<string, string>>): QueuePath {
  const found = requireQueue(parts, params);
  const problem = queuesProblem(parts);
  if (problem !== null) throw new PageError(503, problem, { "Retry-After": "5" });
  return found;
}
