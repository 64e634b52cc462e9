import { type ClockReading, clockProblem } from "./clock.ts";

/** Someone set this machine's clock who moved it by more against the one that only counts; adjusting it drifts slower. */
const STEP_MS = 250;

/** Knows whether this machine's clock is right. */
export interface ClockGuard {
  /** Reads the clocks where that is due. What it knew stays where they cannot be read. */
  check(): Promise<void>;
  /** What is wrong, or null. */
  problem(): string | null;
}

/**
 * Compares clocks every `everyMs`, beginning one interval from now, and tells when ours turns wrong or right again. Where
 * our own (`now`, milliseconds since 1970) was set since, the next check compares at once: BullMQ takes all of its times
 * from it, and a minute of wrong ones takes every schedule along.
 */
export function guardClock(options: {
  now: () => number;
  read: () => Promise<ClockReading[]>;
  everyMs: number;
  onWrong: (problem: string) => Promise<void>;
  onRight: () => Promise<void>;
}): ClockGuard {
  const { now, read, everyMs, onWrong, onRight } = options;
  let known: string | null = null;
  // not by the clock that is in question
  let checkedAt = performance.now();
  let beganAt = now() - checkedAt;
  return {
    async check() {
      const began = now() - performance.now();
      const isDue = performance.now() - checkedAt >= everyMs || Math.abs(began - beganAt) > STEP_MS;
      if (!isDue) return;
      const found = clockProblem(await read());
      [checkedAt, beganAt] = [performance.now(), began];
      const before = known;
      known = found;
      if (found !== null && before === null) await onWrong(found);
      if (found === null && before !== null) await onRight();
    },
    problem: () => known,
  };
}
