import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";

/** The parts of something that is done over and over, each on its own feet. */
export interface Parts {
  /** Does one part; false where it failed. Never throws. */
  attempt(part: string, work: () => Promise<unknown>): Promise<boolean>;
  /** The parts that failed when last done, with their reasons. */
  troubles(): Record<string, string>;
}

/** A part that fails is logged when it begins to fail, when the reason changes and when it is well again. */
export function createParts(log: Log): Parts {
  const reasons = new Map<string, string>();
  return {
    async attempt(part, work) {
      try {
        await work();
      } catch (error) {
        const reason = reasonOf(error);
        if (reasons.get(part) !== reason) log.warn({ part, err: error }, `${part} failed: ${reason}`);
        reasons.set(part, reason);
        return false;
      }
      if (reasons.delete(part)) log.info({ part }, `${part}: well again`);
      return true;
    },
    troubles: () => Object.fromEntries(reasons),
  };
}
