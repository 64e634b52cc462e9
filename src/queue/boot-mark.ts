import { prefixOf, type Queues } from "./queues.ts";

/** A key that is gone when Redis lost its data. */
const MARK = "rh:boot";

/** What is left of the mark that was set last. */
export interface FoundMark {
  /** The mark; null if any part of it is gone and it has to be set again. */
  mark: string | null;
  /** Did Redis, or a node of it, lose its data since the mark `known` was set? */
  isLost: boolean;
}

/**
 * Looks for the mark. In a Redis Cluster each node may lose its data alone, so that one part of the mark lies next to
 * each queue; of a node that is away nothing is known.
 * @throws Error where no node answers.
 */
export async function findMark(queues: Queues, known: string | null): Promise<FoundMark> {
  const keys = keysOf(queues);
  const answers = await Promise.allSettled(keys.map(({ key }) => queues.redis.get(key)));
  const [failure] = answers.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
  const found = answers.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  if (found.length === 0) throw failure;
  const gone = keys.filter((_, at) => {
    const answer = answers[at];
    return answer?.status === "fulfilled" && answer.value === null;
  });
  return {
    mark: gone.length > 0 ? null : (found[0] ?? null),
    isLost: known !== null && gone.some(({ queue }) => queue === null || known.split(" ").includes(queue)),
  };
}

/** Sets the mark and gives it; it names the queues that it lies next to. */
export async function setMark(queues: Queues, by: string): Promise<string> {
  const keys = keysOf(queues);
  const beside = keys.flatMap(({ queue }) => (queue === null ? [] : [queue]));
  const mark = [by, new Date().toISOString(), ...beside].join(" ");
  await Promise.all(keys.map(({ key }) => queues.redis.set(key, mark)));
  return mark;
}

function keysOf({ jobs, redis }: Queues): { key: string; queue: string | null }[] {
  if (!redis.isCluster) return [{ key: MARK, queue: null }];
  return jobs.map(({ name }) => ({ key: `${prefixOf(name)}:boot`, queue: name }));
}
