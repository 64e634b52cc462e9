import { type ClockReading, clockProblem } from "./clock.ts";

/** Knows whether this machine's clock is right. */
export interface ClockGuard {
  /** Reads the clocks where that is due. What it knew stays where they cannot be read. */
  check(): Promise<void>;
  /** What is wrong, or null. */
  problem(): string | null;
}

/** Compares clocks every `everyMs`, beginning one interval from now, and tells when ours turns wrong or right again. */
export function guardClock(options: {
  read: () => Promise<ClockReading[]>;
  everyMs: number;
  onWrong: (problem: string) => Promise<void>;
  onRight: () => Promise<void>;
}): ClockGuard {
  let known: string | null = null;
  // not by the clock that is in question
  let checkedAt = performance.now();
  return {
    async check() {
      if (performance.now() - checkedAt < options.everyMs) return;
      const found = clockProblem(await options.read());
      checkedAt = performance.now();
      const before = known;
      known = found;
      if (found !== null && before === null) await options.onWrong(found);
      if (found === null && before !== null) await options.onRight();
    },
    problem: () => known,
  };
}
