import { LRUCache } from "lru-cache";
import { within } from "../within.ts";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";

/** How long a page waits for a part from the database; without it the rest of the page is shown. */
export const PART_TIMEOUT_MS = 2_000;
/** A statement that has not ended by then is assumed to be on a dead connection, and another may start. */
const LOST_AFTER_MS = 10_000;

/** Returns the loaded value; null if it is not available in time, and then the next call retries. */
export type Loader<Value> = () => Promise<Value | null>;

/**
 * Loads a part of a page for all visitors: the value is cached, and one statement runs at a time, so that visitors, who
 * need no key, cannot overload the database.
 */
export function loader<Value>(
  what: string,
  load: () => Promise<Value>,
  { cachedMs, log }: { cachedMs: number; log: Log },
): Loader<Value> {
  let latest: { value: Value; at: number } | null = null;
  let running: { promise: Promise<Value>; at: number } | null = null;
  let isFailing = false;

  function run(): Promise<Value> {
    const at = performance.now();
    const promise = load()
      .then((value) => {
        latest = { value, at };
        return value;
      })
      .finally(() => {
        if (running?.at === at) running = null;
      });
    running = { promise, at };
    return promise;
  }

  return async () => {
    const now = performance.now();
    if (latest !== null && now - latest.at < cachedMs) return latest.value;
    const isLost = running !== null && now - running.at > LOST_AFTER_MS;
    try {
      const value = await within(PART_TIMEOUT_MS, "PostgreSQL", running === null || isLost ? run() : running.promise);
      isFailing = false;
      return value;
    } catch (error) {
      if (!isFailing) log.warn(`the site is shown without ${what}: ${reasonOf(error)}`);
      isFailing = true;
      return null;
    }
  };
}

/** Loaders per kind, if not set otherwise. */
const MOST_LOADERS = 1_000;

/** A {@link loader} per name, at most `most`; the least recently used is evicted. Only names of existing things may be passed, so that visitors cannot create others. */
export function loaders<Value>(
  what: string,
  load: (of: string) => Promise<Value>,
  { most = MOST_LOADERS, ...options }: { cachedMs: number; log: Log; most?: number | undefined },
): (of: string) => Promise<Value | null> {
  const all = new LRUCache<string, Loader<Value>>({
    max: most,
    memoMethod: (of) => loader(what, () => load(of), options),
  });
  return (of) => all.memo(of)();
}
