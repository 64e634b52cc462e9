import { setTimeout as delay } from "node:timers/promises";
import { InvariantViolation } from "./invariant-violation.ts";

const CHECK_EVERY_MS = 250;

/**
 * Waits until a condition is true.
 * @throws InvariantViolation with `what`, the opposite of the condition, after the timeout
 */
export async function waitUntil(what: string, withinMs: number, isTrue: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + withinMs; !(await isTrue()); await delay(CHECK_EVERY_MS)) {
    if (Date.now() > end) throw new InvariantViolation(`${what} within ${withinMs / 1_000} s`);
  }
}
