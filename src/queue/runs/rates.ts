import type { Queues } from "../queues.ts";

/** Runs that ended, by minute: `done[0]` and `failed[0]` are those of the newest whole minute. */
export interface Rates {
  done: number[];
  failed: number[];
}

const MINUTE_MS = 60_000;

/** Counts the runs of a queue that ended in each of the last `minutes` whole minutes. */
export async function readRates(queues: Queues, queue: string, minutes: number, now: number): Promise<Rates> {
  const read = async (type: "completed" | "failed") => {
    const { data, meta } = await queues.get(queue).getMetrics(type, 0, minutes + 1);
    const pending = meta.count - meta.prevCount;
    return alignMinutes(data, { newestAt: meta.prevTS, pending, now, minutes });
  };
  const [done, failed] = await Promise.all([read("completed"), read("failed")]);
  return { done, failed };
}

/**
 * Aligns counts by minute with the present. BullMQ stores a minute when the first run of a later minute ends, so the counts
 * of an idle queue are old: `data[0]` belongs to the minute before `newestAt`, and `pending` is the count of the minute of
 * `newestAt` so far.
 *
 * @example
 * alignMinutes([5, 4], { newestAt: 600_000, pending: 3, now: 730_000, minutes: 5 }); // => [0, 3, 5, 4, 0]
 * alignMinutes([5, 4], { newestAt: 600_000, pending: 3, now: 610_000, minutes: 3 }); // => [5, 4, 0]
 */
export function alignMinutes(
  data: readonly number[],
  { newestAt, pending, now, minutes }: { newestAt: number; pending: number; now: number; minutes: number },
): number[] {
  const behind = newestAt > 0 ? Math.floor(now / MINUTE_MS) - Math.floor(newestAt / MINUTE_MS) : minutes;
  return Array.from({ length: minutes }, (_, at) => (at === behind - 1 ? pending : (data[at - behind] ?? 0)));
}
