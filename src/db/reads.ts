import { unlessAborted } from "../abort.ts";
import { asError } from "../errors.ts";
import type { Sql } from "./client.ts";

/** Too many reads wait already; a retry after a few seconds can succeed. */
export class TooManyReadsError extends Error {
  override name = "TooManyReadsError";
}

/**
 * Runs a read for a waiting client, as soon as the limit allows. Its statements must use the given `sql`: when `signal`
 * aborts, those that run are cancelled on the server, and no other is sent.
 *
 * The read counts as running until its last statement has ended, so a server that does not respond gets no more than the
 * limit of reads.
 * @throws the signal's reason, as soon as it aborts
 * @throws TooManyReadsError if the limit of waiting reads is reached
 */
export type Reads = <Value>(signal: AbortSignal, read: (sql: Sql) => Promise<Value>) => Promise<Value>;

/** Runs one read as soon as a limit allows, for a client that is known. */
export type Read = <Value>(read: (sql: Sql) => Promise<Value>) => Promise<Value>;

/** Limits the reads of a pool: how many run concurrently, and how many wait. */
export function boundReads(sql: Sql, limits: { atOnce: number; waiting: number }): Reads {
  const waiting = new Set<() => void>();
  let running = 0;

  async function acquire(signal: AbortSignal): Promise<void> {
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
        reject(asError(signal.reason));
      };
      waiting.add(begin);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  /** Starts the read that has waited longest. */
  function release(): void {
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
      release();
    }
  }

  return async (signal, read) => {
    signal.throwIfAborted();
    await acquire(signal);
    return unlessAborted(run(signal, read), signal);
  };
}
