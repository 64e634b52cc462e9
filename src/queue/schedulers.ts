import { isDeepStrictEqual } from "node:util";
import type { JobSchedulerJson, Queue, RepeatOptions } from "bullmq";
import type { Job, Schedule } from "./job.ts";
import { runOptions } from "./queues.ts";

/** A start that is this late without a run that waits for it has lost its chain. */
const HALTED_AFTER_MS = 10_000;
/** A start that is further off than its interval and this was set by a worker whose clock ran ahead. */
const AHEAD_MS = 1_000;
/** Commands in flight at once: enough to fill the connection, few enough to keep it answering others. */
const BATCH = 100;

interface Wanted {
  repeat: Omit<RepeatOptions, "key">;
  data: unknown;
  opts: ReturnType<typeof templateOptions>;
}

/**
 * Makes the schedulers of a queue in Redis equal to `schedules`, and revives those whose chain of starts has halted or was
 * carried into the future by a worker whose clock was wrong.
 *
 * One that is right is left alone: setting it again is safe, but puts its waiting run at the end of the queue, where a
 * busy queue would starve it. One that changed is set over, never removed and set, after which BullMQ may make no run
 * at all (taskforcesh/bullmq#3063). `now` is this machine's clock, as BullMQ's own times are.
 * @throws Error where two schedules have the same key; one of them would silently replace the other.
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
    const { every } = one.repeat;
    const isAhead = every !== undefined && (found?.next ?? now) > now + every + AHEAD_MS;
    // set over with the same interval a start keeps its time
    if (isAhead) await set({ ...one.repeat, every: every + 1 });
    const stands = found !== undefined && isAsWanted(found, one) && !(await hasHalted(queue, found, now));
    if (isAhead || !stands) await set(one.repeat);
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
    // an id with four colons is taken for a key of an older BullMQ (taskforcesh/bullmq#3828)
    const id = key.replaceAll(":", "%3A");
    if (wanted.has(id)) throw new Error(`two schedules of ${job.name} have the key ${JSON.stringify(key)}`);
    const repeat =
      "cron" in schedule
        ? { pattern: schedule.cron, tz: "UTC" }
        : { every: schedule.everyMs, offset: schedule.offsetMs % schedule.everyMs };
    const data: unknown = JSON.parse(JSON.stringify(schedule.payload)); // as it will be read back
    wanted.set(id, { repeat, data, opts: templateOptions(job) });
  }
  return wanted;
}

/** A failed run is not kept either: as the next one's id it would halt the chain (taskforcesh/bullmq#3272). */
function templateOptions(job: Job<unknown>) {
  return { ...runOptions(job), removeOnFail: true };
}

function isAsWanted(found: JobSchedulerJson, { repeat, data, opts }: Wanted): boolean {
  return (
    found.every === repeat.every &&
    found.pattern === repeat.pattern &&
    found.tz === repeat.tz &&
    // without an offset the first run is at once, and BullMQ notes where that was
    (!repeat.offset || found.offset === repeat.offset) &&
    isDeepStrictEqual(found.template?.data ?? {}, data) &&
    isDeepStrictEqual(found.template?.opts, opts)
  );
}

async function hasHalted(queue: Queue, { key, next }: JobSchedulerJson, now: number): Promise<boolean> {
  if (next !== undefined && next > now - HALTED_AFTER_MS) return false;
  const state = await queue.getJobState(`repeat:${key}:${next}`);
  return state !== "delayed" && state !== "waiting" && state !== "active" && state !== "prioritized";
}
