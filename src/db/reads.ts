import type { Sql } from "./client.ts";

/** Too many reads wait already: trying again in a few seconds can help. */
export class TooManyReadsError extends Error {
  override name = "TooManyReadsError";
}

/**
 * Runs a read that someone waits for, when its turn comes. Its statements must go through the `sql` that it is given: when
 * `signal` aborts, the server is asked to end those that run, and none is sent after that.
 *
 * The read counts as running until its last statement has ended, so a server that does not respond gets no more than the
 * limit of reads.
 * @throws the signal's reason, as soon as it aborts
 * @throws TooManyReadsError when as many reads wait as may
 */
export type Reads = <Value>(signal: AbortSignal, read: (sql: Sql) => Promise<Value>) => Promise<Value>;

/** Bounds the reads of a pool: so many at once, so many waiting for their turn. */
export function boundReads(sql: Sql, limits: { atOnce: number; waiting: number }): Reads {
  const waiting = new Set<() => void>();
  let running = 0;

  async function turn(signal: AbortSignal): Promise<void> {
    if (running < limits.atOnce) {
      running++;
      return;
    }
    if (waiting.size >= limits.waiting) {
      throw new TooManyReadsError(
        `expected at most ${limits.waiting} reads to wait for the database; try again in a few seconds`,
      );
    }
    await new Promise<void>((resolve, reject) => {
      const begin = () => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        waiting.delete(begin);
        reject(reasonOf(signal));
      };
      waiting.add(begin);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  /** Gives the turn to the read that has waited longest. */
  function endTurn(): void {
    const next = waiting.values().next().value;
    if (next === undefined) {
      running--;
      return;
    }
    waiting.delete(next);
    next();
  }

  async function run<Value>(signal: AbortSignal, read: (sql: Sql) => Promise<Value>): Promise<Value> {
    try {
      return await read(sql.until(signal));
    } finally {
      endTurn();
    }
  }

  return async (signal, read) => {
    signal.throwIfAborted();
    await turn(signal);
    return untilAborted(run(signal, read), signal);
  };
}

async function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(reasonOf(signal));
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  promise.catch(() => undefined); // after an abort no one waits for it
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason));
}
