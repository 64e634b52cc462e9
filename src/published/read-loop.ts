import { setTimeout as delay } from "node:timers/promises";
import { reasonOf } from "../errors.ts";
import { within } from "../within.ts";
import type { Log } from "../log.ts";

/** Twenty reads per second are fast enough for callers, and limit the load of a busy evening on the database. */
const SPACING_MS = 50;
const RETRY_MS = 1_000;
const CLOSE_MS = 10_000;

/** Reads that follow one another. */
export interface ReadLoop {
  /** Requests a read soon, of these tables or of all. Never throws. */
  refresh(tableIds?: readonly number[] | null): void;
  /** Ends after the current read, or after 10 s. */
  close(): Promise<void>;
}

/**
 * Runs `read` on request, and for all tables (null) every `everyMs`: one read at a time. Requests during a read share the
 * next one. After a failed read all tables are read again, because notifications were missed. A read has no deadline but
 * those of its statements: all of it, begun again, would take as long.
 */
export function startReadLoop(
  read: (tableIds: readonly number[] | null) => Promise<void>,
  everyMs: number,
  log: Log,
): ReadLoop {
  const closing = new AbortController();
  let requested: Set<number> | "all" | null = null;
  let running: Promise<void> | null = null;
  let isFailing = false;

  async function run(): Promise<void> {
    while (requested !== null && !closing.signal.aborted) {
      const tableIds = requested === "all" ? null : [...requested];
      requested = null;
      const [isRead] = await Promise.all([tryToRead(tableIds), pause(SPACING_MS)]);
      if (isRead) continue;
      requested = "all";
      await pause(RETRY_MS);
    }
    running = null;
  }

  async function tryToRead(tableIds: readonly number[] | null): Promise<boolean> {
    try {
      await read(tableIds);
      if (isFailing) log.info("the stored results can be read again");
      isFailing = false;
      return true;
    } catch (error) {
      if (!isFailing) log.warn(`the stored results cannot be read, so older ones are shown: ${reasonOf(error)}`);
      isFailing = true;
      return false;
    }
  }

  function pause(ms: number): Promise<void> {
    return delay(ms, undefined, { signal: closing.signal, ref: false }).catch(() => undefined);
  }

  function refresh(tableIds: readonly number[] | null = null): void {
    if (tableIds === null) requested = "all";
    else if (requested !== "all") {
      requested ??= new Set();
      for (const id of tableIds) requested.add(id);
    }
    running ??= run();
  }

  const timer = setInterval(() => refresh(), everyMs).unref();
  return {
    refresh,
    async close() {
      clearInterval(timer);
      closing.abort();
      await within(CLOSE_MS, "PostgreSQL", running ?? Promise.resolve()).catch(() => undefined);
    },
  };
}
