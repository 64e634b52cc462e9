import { setTimeout as delay } from "node:timers/promises";

/**
 * Waits until `check` neither throws nor returns false or undefined, and returns its result.
 * Runs it every 25 ms, or `everyMs` if a check is costly; after `timeoutMs` (20 s) it throws the last error, or that the check did not come true.
 */
export async function eventually<T>(
  check: () => Promise<T | false | undefined> | T | false | undefined,
  { timeoutMs = 20_000, everyMs = 25 }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    let failure: unknown = new Error(`the check did not come true within ${timeoutMs} ms`);
    try {
      const result = await check();
      if (result !== false && result !== undefined) return result;
    } catch (error) {
      failure = error;
    }
    if (performance.now() > deadline) throw failure;
    await delay(everyMs);
  }
}
