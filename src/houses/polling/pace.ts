import { hash } from "node:crypto";
import { z } from "zod";

/** When a house shard is polled, and how many of these polls one run makes. */
export const paceSchema = z.object({
  everyMs: z.int().min(1),
  /** Of the first poll of a run, from the epoch: spreads houses over time. */
  offsetMs: z.int().min(0),
  polls: z.int().min(1),
  /** Each poll begins at random within this time. */
  spreadMs: z.int().min(0).default(0),
});
export type Pace = z.infer<typeof paceSchema>;

/** Polls of one run: as many as fit in this time. (With a run per poll, 1,000 houses take 1.3 cores instead of 1.1.) */
export const RUN_MS = 10_000;
/** A run starts so long before its first poll, since a busy queue starts it late. */
const LEAD_MS = 1_000;

/** The pace of polls every `everyMs`, each at random within `spreadMs`; the name of the shard decides its offset. */
export function paceOf(everyMs: number, name: string, spreadMs = 0): Pace {
  const polls = Math.max(1, Math.floor(RUN_MS / everyMs));
  return { everyMs, offsetMs: placeIn(everyMs * polls, name), polls, spreadMs };
}

/** The schedule of the runs of a pace. */
export function runsOf(pace: Pace): { everyMs: number; offsetMs: number } {
  const everyMs = pace.everyMs * pace.polls;
  return { everyMs, offsetMs: (pace.offsetMs - LEAD_MS + everyMs) % everyMs };
}

/** The numbers of the polls of a run that starts at `now`, in milliseconds since the epoch: from `first` to before `end`. */
export function pollsOf(pace: Pace, now: number): { first: number; end: number } {
  const run = (time: number) => Math.floor(pollAt(pace, time) / pace.polls);
  // two leads: clocks of processes may differ by a second, and that of another one may have started this run
  const isEarly = run(now + 2 * LEAD_MS) > run(now);
  const end = (run(now) + (isEarly ? 2 : 1)) * pace.polls;
  return { first: isEarly ? end - pace.polls : pollAt(pace, now), end };
}

/** The number of the newest poll that is due at `now`. */
export function pollAt({ everyMs, offsetMs }: Pace, now: number): number {
  return Math.floor((now - offsetMs) / everyMs);
}

/** The time of a poll, in milliseconds since the epoch. */
export function timeOf({ everyMs, offsetMs }: Pace, poll: number): number {
  return offsetMs + poll * everyMs;
}

/** An offset in an interval, so that a thousand houses are not due in the same millisecond. */
export function placeIn(everyMs: number, name: string): number {
  return Number.parseInt(hash("sha256", name).slice(0, 12), 16) % everyMs;
}
