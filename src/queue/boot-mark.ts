import { prefixOf, type Queues } from "./queues.ts";

/** A key whose absence shows that Redis lost its data. */
const MARK = "rh:boot";

/** The mark, as found. */
export interface FoundMark {
  /** The mark; null if any part of it is missing and it must be set again. */
  mark: string | null;
  /** Whether Redis, or a node of it, lost its data since the mark `known` was set. */
  isLost: boolean;
}

/**
 * Reads the mark. A node of a Redis Cluster can lose its data alone, so a part of the mark is stored with each queue. An
 * unavailable node counts as neither.
 * @throws Error if no node responds.
 */
export async function findMark(queues: Queues, known: string | null): Promise<FoundMark> {
  const keys = keysOf(queues);
  const responses = await Promise.allSettled(keys.map(({ key }) => queues.redis.get(key)));
  const [failure] = responses.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
  const found = responses.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  if (found.length === 0) throw failure;
  const gone = keys.filter((_, at) => {
    const response = responses[at];
    return response?.status === "fulfilled" && response.value === null;
  });
  return {
    mark: gone.length > 0 ? null : (found[0] ?? null),
    isLost: known !== null && gone.some(({ queue }) => queue === null || known.split(" ").includes(queue)),
  };
}

/** Sets the mark and returns it; it names the queues with which it is stored. */
export async function setMark(queues: Queues, by: string): Promise<string> {
  const keys = keysOf(queues);
  const names = keys.flatMap(({ queue }) => (queue === null ? [] : [queue]));
  const mark = [by, new Date().toISOString(), ...names].join(" ");
  await Promise.all(keys.map(({ key }) => queues.redis.set(key, mark)));
  return mark;
}

function keysOf({ jobs, redis }: Queues): { key: string; queue: string | null }[] {
  if (!redis.isCluster) return [{ key: MARK, queue: null }];
  return jobs.map(({ name }) => ({ key: `${prefixOf(name)}:boot`, queue: name }));
}
