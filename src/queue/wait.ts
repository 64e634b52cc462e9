import { setTimeout as delay } from "node:timers/promises";

/** Waits for `work`, but at most `ms`; true where it ended in time. A failure of `work` is thrown where it came in time. */
export async function endsWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  const patience = new AbortController();
  try {
    return await Promise.race([work.then(() => true), delay(ms, false, { signal: patience.signal })]);
  } finally {
    patience.abort();
  }
}

/** Does `work` now and then every `ms`, never twice at once: a round that takes longer makes the next one wait. */
export function every(ms: number, work: () => Promise<void>): { stop(): Promise<void> } {
  let round: Promise<void> | null = null;
  const begin = () => {
    round ??= work().finally(() => {
      round = null;
    });
  };
  const timer = setInterval(begin, ms);
  begin();
  return {
    async stop() {
      clearInterval(timer);
      await round;
    },
  };
}
