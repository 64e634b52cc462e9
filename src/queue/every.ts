/** Work that repeats until it is stopped. */
export interface Repeated {
  /** Starts no further run and waits for the current one. */
  stop(): Promise<void>;
}

/**
 * Runs `work` now and then every `ms`, or earlier after the milliseconds that it returns. Runs do not overlap: one that
 * takes longer delays the next one.
 */
export function every(ms: number, work: () => Promise<number>): Repeated {
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
