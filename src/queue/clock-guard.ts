import { type ClockReading, clockProblem } from "./clock.ts";

/** A larger difference to the monotonic clock means that the clock was set; NTP adjusts it in smaller steps. */
const STEP_MS = 250;

/** Checks the clock of this machine. */
export interface ClockGuard {
  /** Compares the clocks if that is due. If they cannot be read, it throws and keeps the last result. */
  check(): Promise<void>;
  /** The problem, or null. */
  problem(): string | null;
}

/**
 * Compares clocks every `everyMs`, first one interval from now, and reports when that of this machine becomes wrong or
 * right. If it (`now`, milliseconds since 1970) was set since, the next check compares immediately: BullMQ takes all times
 * from it, and a minute of wrong ones moves every schedule.
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
  // by the monotonic clock, since the other one may be wrong
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
