import { Session } from "node:inspector";
import { constants, PerformanceObserver } from "node:perf_hooks";
import { getHeapStatistics, setFlagsFromString } from "node:v8";

/** How far a heap may grow until all of it is collected, in percent of what is live: see src/start.js. */
const PERCENT = 40;
/** While it is collected often, it may grow by 64 MB, but not by more than this: it holds for the heaps of threads too. */
const PERCENT_OFTEN = 100;
const ROOM = 64 << 20;

/** What is often, for longer than the moment in which a worker takes over its tables: the memory of that is kept. */
const OFTEN = { minor: { count: 50, withinMs: 5_000 }, major: { count: 10, withinMs: 20_000 } };

/** Pages are given back when so much less is live than before, and at most once in this time: it blocks for 0.2 to 0.6 s. */
const SURPLUS = 64 << 20;
const GIVE_BACK_EVERY_MS = 600_000;

/**
 * Adapts the heap of a worker to its work from now on. By V8's flags for the next collection, both generations grow while
 * they are collected often: V8 would let the young one grow with time, and docs/benchmarks.md has what that costs. And the
 * pages of the largest moment are given back to the system, which V8 does in a process that does nothing.
 */
export function adaptHeap(giveBackEveryMs = GIVE_BACK_EVERY_MS): void {
  const flagAfter = heapFlags();
  const hasSurplus = heapSurplus(giveBackEveryMs);
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntriesByType("gc")) {
      const { detail } = entry as { detail?: { kind?: number } };
      const collection = {
        kind: detail?.kind,
        atMs: entry.startTime,
        usedBytes: getHeapStatistics().used_heap_size,
      };
      const flag = flagAfter(collection);
      if (flag !== null) setFlagsFromString(flag);
      if (hasSurplus(collection)) giveBackPages();
    }
  });
  observer.observe({ entryTypes: ["gc"] });
}

/** A collection: its kind as a constant of node:perf_hooks, its time, and what the heap used after it. */
interface Collection {
  kind: number | undefined;
  atMs: number;
  usedBytes: number;
}

/** Returns a function that is called for one collection after the other; it returns the flag to set, or null. */
export function heapFlags(): (collection: Collection) => string | null {
  const isMinorOften = frequency(OFTEN.minor);
  const isMajorOften = frequency(OFTEN.major);
  return ({ kind, atMs, usedBytes }) => {
    if (kind === constants.NODE_PERFORMANCE_GC_MINOR) return `--semi-space-growth-factor=${isMinorOften(atMs) ? 2 : 1}`;
    if (kind !== constants.NODE_PERFORMANCE_GC_MAJOR) return null;
    const room = Math.ceil((100 * ROOM) / usedBytes);
    return `--heap-growing-percent=${isMajorOften(atMs) ? Math.min(PERCENT_OFTEN, Math.max(PERCENT, room)) : PERCENT}`;
  };
}

/**
 * Returns a function that is called for one collection after the other; it returns whether pages are to be given back now,
 * and then begins again.
 */
export function heapSurplus(everyMs: number): (collection: Collection) => boolean {
  let [largest, lastMs] = [0, -everyMs];
  return ({ kind, atMs, usedBytes }) => {
    if (kind !== constants.NODE_PERFORMANCE_GC_MAJOR) return false;
    largest = Math.max(largest, usedBytes);
    if (largest - usedBytes < SURPLUS || atMs - lastMs < everyMs) return false;
    [largest, lastMs] = [usedBytes, atMs];
    return true;
  };
}

/** Collects all that is not live, and gives every empty page to the system, those that V8 keeps for later too. */
function giveBackPages(): void {
  const session = new Session();
  session.connect();
  // not inside of the callback: the session is still used there, and the process would hang
  session.post("HeapProfiler.collectGarbage", () => setImmediate(() => session.disconnect()));
}

/** Notes the time of an event; returns whether it was the last of many within a time. */
function frequency({ count, withinMs }: { count: number; withinMs: number }): (at: number) => boolean {
  const times: number[] = [];
  return (at) => {
    const before = times.push(at) > count ? times.shift() : undefined;
    return before !== undefined && at - before < withinMs;
  };
}
