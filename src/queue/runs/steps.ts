import { reasonOf } from "../../errors.ts";
import type { Log } from "../../log.ts";

/** The steps of repeated work, each of which may fail without the others. */
export interface Steps {
  /** Runs one step; false if it failed. Never throws. */
  attempt(step: string, work: () => Promise<unknown>): Promise<boolean>;
  /** The steps whose last run failed, with their reasons. */
  failures(): Record<string, string>;
}

/** Logs a failing step when it begins to fail, when its reason changes, and when it has recovered. */
export function createSteps(log: Log): Steps {
  const reasons = new Map<string, string>();
  return {
    async attempt(step, work) {
      try {
        await work();
      } catch (error) {
        const reason = reasonOf(error);
        if (reasons.get(step) !== reason) log.warn({ step, err: error }, `${step} failed: ${reason}`);
        reasons.set(step, reason);
        return false;
      }
      if (reasons.delete(step)) log.info({ step }, `${step} recovered`);
      return true;
    },
    failures: () => Object.fromEntries(reasons),
  };
}
