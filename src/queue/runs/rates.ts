import type { Queues } from "../queues.ts";

/** Attempts that ended in a span of whole minutes and the running one. */
export interface EndedAttempts {
  total: number;
  /** The whole minutes, oldest first. */
  byMinute: number[];
}

/** Attempts of a queue that ended, by result. */
export interface Rates {
  done: EndedAttempts;
  failed: EndedAttempts;
}

const MINUTE_MS = 60_000;

/** Counts the attempts of a queue that ended in the running minute and the `minutes` before. */
export async function readRates(queues: Queues, queue: string, minutes: number, now: number): Promise<Rates> {
  const read = async (type: "completed" | "failed") => {
    const { data, meta } = await queues.get(queue).getMetrics(type, 0, minutes + 1);
    const pending = meta.count - meta.prevCount;
    const counts = alignMinutes(data, { newestAt: meta.prevTS, pending, now, minutes: minutes + 1 });
    return { total: counts.reduce((sum, n) => sum + n, 0), byMinute: counts.slice(1).toReversed() };
  };
  const [done, failed] = await Promise.all([read("completed"), read("failed")]);
  return { done, failed };
}

/**
 * Aligns counts by minute with the present, the running minute first. BullMQ stores a minute when the first run of a later
 * minute ends, so the counts of an idle queue are old: `data[0]` belongs to the minute before `newestAt`, and `pending` is
 * the count of the minute of `newestAt` so far.
 *
 * @example
 * alignMinutes([5, 4], { newestAt: 600_000, pending: 3, now: 730_000, minutes: 6 }); // => [0, 0, 3, 5, 4, 0]
 * alignMinutes([5, 4], { newestAt: 600_000, pending: 3, now: 610_000, minutes: 4 }); // => [3, 5, 4, 0]
 */
export function alignMinutes(
  data: readonly number[],
  { newestAt, pending, now, minutes }: { newestAt: number; pending: number; now: number; minutes: number },
): number[] {
  const behind = newestAt > 0 ? Math.floor(now / MINUTE_MS) - Math.floor(newestAt / MINUTE_MS) : minutes;
  return Array.from({ length: minutes }, (_, at) => (at === behind ? pending : (data[at - behind - 1] ?? 0)));
}
