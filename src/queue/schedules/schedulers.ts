import { isDeepStrictEqual } from "node:util";
import type { JobSchedulerJson, Queue } from "bullmq";
import type { Job, Schedule } from "../job.ts";
import { runOptions } from "../queues.ts";

/** A start that is this late and has no run shows that the chain of starts has stopped. */
const HALTED_AFTER_MS = 10_000;
/** A start that is later than its interval plus this was set by a worker whose clock was ahead, or by a promoted run. */
const AHEAD_MS = 1_000;
/** Concurrent commands: enough to fill the connection, few enough not to delay others. */
const BATCH = 100;

interface Wanted {
  repeat: { every: number; offset: number };
  data: unknown;
  opts: ReturnType<typeof templateOptions>;
}

/**
 * Makes the schedulers of a queue in Redis equal to `schedules`, and restarts those whose chain of starts has stopped, is not
 * at the offset or was moved into the future by a worker whose clock was wrong.
 *
 * A scheduler that is right is not written: that is safe, but moves its waiting run to the end of the queue, where a busy
 * queue would starve it. One that changed is overwritten, never removed and added again, after which BullMQ may add no run
 * at all (taskforcesh/bullmq#3063). `now` is this machine's clock, like the times of BullMQ.
 * @throws Error if two schedules have the same key; one would silently replace the other.
 */
export async function syncSchedulers(
  queue: Queue,
  job: Job<unknown>,
  schedules: readonly Schedule<unknown>[],
  now: number,
): Promise<void> {
  const wanted = wantedSchedulers(job, schedules);
  const present = new Map((await queue.getJobSchedulers()).map((scheduler) => [scheduler.key, scheduler]));
  await inBatches([...wanted], async ([id, one]) => {
    const found = present.get(id);
    const set = (repeat: Wanted["repeat"]) =>
      queue.upsertJobScheduler(id, repeat, { name: job.name, data: one.data, opts: one.opts });
    const isMisplaced = found?.next !== undefined && isNoStartOf(one.repeat, found.next, now);
    // an overwritten scheduler with the same interval keeps its next start
    if (isMisplaced) await set({ ...one.repeat, every: one.repeat.every + 1 });
    const isRight = found !== undefined && isAsWanted(found, one) && !(await hasHalted(queue, found, now));
    if (isMisplaced || !isRight) await set(one.repeat);
  });
  await inBatches(
    [...present.keys()].filter((id) => !wanted.has(id)),
    (id) => queue.removeJobScheduler(id),
  );
}

/** Runs `work` over the items, a hundred at a time. */
export async function inBatches<Item>(items: readonly Item[], work: (item: Item) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < items.length; from += BATCH) await Promise.all(items.slice(from, from + BATCH).map(work));
}

function wantedSchedulers(job: Job<unknown>, schedules: readonly Schedule<unknown>[]): Map<string, Wanted> {
  const wanted = new Map<string, Wanted>();
  for (const schedule of schedules) {
    const key = job.key(schedule.payload);
    // BullMQ mistakes an id with four colons for a key of an older version (taskforcesh/bullmq#3828)
    const id = key.replaceAll(":", "%3A");
    if (wanted.has(id)) throw new Error(`two schedules of ${job.name} have the key ${JSON.stringify(key)}`);
    const every = schedule.everyMs;
    // BullMQ 6.7 ignores an offset of 0 and starts the first run immediately; a whole interval is the same offset
    const repeat = { every, offset: schedule.offsetMs % every || every };
    const data: unknown = JSON.parse(JSON.stringify(schedule.payload)); // as it will be read back
    wanted.set(id, { repeat, data, opts: templateOptions(job) });
  }
  return wanted;
}

/** Failed runs are removed too: one with the id of the next run would stop the chain (taskforcesh/bullmq#3272). */
function templateOptions(job: Job<unknown>) {
  return { ...runOptions(job), removeOnFail: true };
}

/** Whether a schedule does not start at `next`: it is too far in the future, or not at the offset. */
function isNoStartOf({ every, offset }: Wanted["repeat"], next: number, now: number): boolean {
  return next > now + every + AHEAD_MS || next % every !== offset % every;
}

function isAsWanted(found: JobSchedulerJson, { repeat, data, opts }: Wanted): boolean {
  return (
    found.every === repeat.every &&
    found.offset === repeat.offset &&
    isDeepStrictEqual(found.template?.data ?? {}, data) &&
    isDeepStrictEqual(found.template?.opts, opts)
  );
}

async function hasHalted(queue: Queue, { key, next }: JobSchedulerJson, now: number): Promise<boolean> {
  if (next !== undefined && next > now - HALTED_AFTER_MS) return false;
  const state = await queue.getJobState(`repeat:${key}:${next}`);
  return state !== "delayed" && state !== "waiting" && state !== "active" && state !== "prioritized";
}
