import { setTimeout as delay } from "node:timers/promises";
import { InvariantViolation } from "./invariant-violation.ts";

const CHECK_EVERY_MS = 250;

/**
 * Waits until something is so.
 * @throws Broken with `what` if it is not so in time
 */
export async function until(what: string, withinMs: number, isTrue: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + withinMs; !(await isTrue()); await delay(CHECK_EVERY_MS)) {
    if (Date.now() > end) throw new InvariantViolation(`${what} within ${withinMs / 1_000} s`);
  }
}
