import { inBatches } from "./schedulers.ts";
import type { Queues } from "./queues.ts";

/** One repeated start of a job as Redis has it. */
export interface ScheduleState {
  queue: string;
  /** The key of its payload: `bustabit/0`. */
  key: string;
  everyMs: number | null;
  cron: string | null;
  /** When it starts next; null if Redis does not say. */
  next: Date | null;
  /** How long its next start is over, in milliseconds; 0 where it lies ahead. */
  lateMs: number;
}

/** Every schedule of every queue, the latest first. `now` is this machine's clock, as BullMQ's own times are. */
export async function listSchedules(queues: Queues, now: number): Promise<ScheduleState[]> {
  const found: ScheduleState[] = [];
  await inBatches(queues.jobs, async ({ name, schedule }) => {
    if (schedule === null) return;
    for (const { key, every, pattern, next } of await queues.get(name).getJobSchedulers()) {
      found.push({
        queue: name,
        key: key.replaceAll("%3A", ":"),
        everyMs: every ?? null,
        cron: pattern ?? null,
        next: next === undefined ? null : new Date(next),
        lateMs: next === undefined ? 0 : Math.max(0, now - next),
      });
    }
  });
  return found.toSorted((a, b) => b.lateMs - a.lateMs || a.queue.localeCompare(b.queue) || a.key.localeCompare(b.key));
}

/** Runs that ended by minute: `done[0]` and `failed[0]` are of the newest whole minute. */
export interface Rates {
  done: number[];
  failed: number[];
}

const MINUTE_MS = 60_000;

/** How many runs of a queue ended in each of the last `minutes` whole minutes. */
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
 * Counts by minute, moved to where they belong now. BullMQ writes them when the first run of a later minute ends, so
 * that those of a queue that rests are of the past: `data[0]` is of the minute before `newestAt`, and `pending` is what
 * ended in the minute of `newestAt` so far.
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
