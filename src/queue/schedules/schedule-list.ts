import type { Queues } from "../queues.ts";
import { inBatches } from "./schedulers.ts";

/** One schedule of a job in Redis. */
export interface ScheduleState {
  queue: string;
  /** The key of its payload: `bustabit/0`. */
  key: string;
  everyMs: number | null;
  /** When it starts next; null if unknown. */
  next: Date | null;
  /** How long ago its next start was due, in milliseconds; 0 if it is in the future. */
  lateMs: number;
}

/** Lists every schedule of every queue, the latest first. `now` is this machine's clock, like the times of BullMQ. */
export async function listSchedules(queues: Queues, now: number): Promise<ScheduleState[]> {
  const found: ScheduleState[] = [];
  await inBatches(queues.jobs, async ({ name, schedule }) => {
    if (schedule === null) return;
    for (const { key, every, next } of await queues.get(name).getJobSchedulers()) {
      found.push({
        queue: name,
        key: key.replaceAll("%3A", ":"),
        everyMs: every ?? null,
        next: next === undefined ? null : new Date(next),
        lateMs: next === undefined ? 0 : Math.max(0, now - next),
      });
    }
  });
  return found.toSorted((a, b) => b.lateMs - a.lateMs || a.queue.localeCompare(b.queue) || a.key.localeCompare(b.key));
}
