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

/**
 * Does `work` now and then every `ms`, and also after the milliseconds it returns if those are fewer. Never twice together:
 * a run that takes longer delays the next one.
 */
export function every(ms: number, work: () => Promise<number>): { stop(): Promise<void> } {
  let round: Promise<void> | null = null;
  let early: NodeJS.Timeout | undefined;
  let isStopped = false;
  const run = async () => {
    const nextInMs = await work();
    clearTimeout(early);
    if (nextInMs < ms && !isStopped) early = setTimeout(begin, nextInMs);
  };
  const begin = () => {
    round ??= run().finally(() => {
      round = null;
    });
  };
  const timer = setInterval(begin, ms);
  begin();
  return {
    async stop() {
      isStopped = true;
      clearInterval(timer);
      clearTimeout(early);
      await round;
    },
  };
}
