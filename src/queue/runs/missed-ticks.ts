import type { Job, JobContext } from "../job.ts";

/** The ticks that arrive in this process while a run of their key is active, of a job whose runs last until the next tick. */
export interface MissedTicks {
  /** Notes a tick that was dropped, unless the active run lasts as long as its own would. */
  note(key: string, payload: unknown): void;
  /** Does the work of a run, and then queues the newest tick that it missed, also if the work failed. */
  run(key: string, payload: unknown, work: () => Promise<void>): Promise<void>;
}

/** Creates the list of missed ticks of one job in one process; they are queued by `enqueue`. */
export function createMissedTicks(job: Job<unknown>, { enqueue }: Pick<JobContext, "enqueue">): MissedTicks {
  const until = (payload: unknown, now: number) => job.lasts?.(payload, now) ?? now;
  const active = new Map<string, { until: number; missed: { payload: unknown } | null }>();
  return {
    note(key, payload) {
      const run = active.get(key);
      if (run !== undefined && until(payload, Date.now()) > run.until) run.missed = { payload };
    },
    async run(key, payload, work) {
      const run = { until: until(payload, Date.now()), missed: null as { payload: unknown } | null };
      active.set(key, run);
      try {
        await work();
      } finally {
        if (active.get(key) === run) active.delete(key);
        if (run.missed !== null) await enqueue(job, run.missed.payload);
      }
    },
  };
}
