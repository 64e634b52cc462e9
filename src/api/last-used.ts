import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";

const WRITE_EVERY_MS = 60_000;

/** Remembers which keys were used. Writes are delayed: a minute's precision is enough, and a call must not wait. */
export interface LastUsed {
  note(key: bigint): void;
  /** Writes what is pending. */
  close(): Promise<void>;
}

/** Passes used keys to `write` once a minute; a failed write is retried with the next. */
export function rememberLastUsed(write: (keys: bigint[]) => Promise<void>, log: Log): LastUsed {
  let used = new Set<bigint>();

  async function writeDue(): Promise<void> {
    if (used.size === 0) return;
    const due = used;
    used = new Set();
    try {
      await write([...due]);
    } catch (error) {
      log.warn(`the last use of keys could not be stored: ${reasonOf(error)}`);
      used = used.union(due);
    }
  }

  const timer = setInterval(() => void writeDue(), WRITE_EVERY_MS);
  timer.unref();
  return {
    note: (key) => used.add(key),
    close() {
      clearInterval(timer);
      return writeDue();
    },
  };
}
