import { constants, PerformanceObserver } from "node:perf_hooks";
import { getHeapStatistics, setFlagsFromString } from "node:v8";

/** How far a heap may grow until all of it is collected, in percent of what is live: see src/start.js. */
const PERCENT = 40;
/** While it is collected often, it may grow by 64 MB, but not by more than this: it holds for the heaps of threads too. */
const PERCENT_OFTEN = 100;
const ROOM = 64 << 20;

/** What is often, for longer than the moment in which a worker takes over its tables: the memory of that is kept. */
const OFTEN = { minor: { count: 50, withinMs: 5_000 }, major: { count: 10, withinMs: 20_000 } };

/**
 * Adapts the heap of a worker to its work from now on, by V8's flags for the next collection: both generations grow while
 * they are collected often. V8 would let the young one grow with time, and docs/benchmarks.md has what that costs.
 */
export function adaptHeap(): void {
  const isMinorOften = frequency(OFTEN.minor);
  const isMajorOften = frequency(OFTEN.major);
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntriesByType("gc")) {
      const kind = kindOf(entry);
      if (kind === constants.NODE_PERFORMANCE_GC_MAJOR) growHeap(isMajorOften(entry.startTime));
      if (kind === constants.NODE_PERFORMANCE_GC_MINOR)
        setFlagsFromString(`--semi-space-growth-factor=${isMinorOften(entry.startTime) ? 2 : 1}`);
    }
  });
  observer.observe({ entryTypes: ["gc"] });
}

/** Notes the time of an event; returns whether it was the last of many within a time. */
function frequency({ count, withinMs }: { count: number; withinMs: number }): (at: number) => boolean {
  const times: number[] = [];
  return (at) => {
    const before = times.push(at) > count ? times.shift() : undefined;
    return before !== undefined && at - before < withinMs;
  };
}

function growHeap(isOften: boolean): void {
  const room = Math.ceil((100 * ROOM) / getHeapStatistics().used_heap_size);
  const percent = isOften ? Math.min(PERCENT_OFTEN, Math.max(PERCENT, room)) : PERCENT;
  setFlagsFromString(`--heap-growing-percent=${percent}`);
}

function kindOf(entry: object): number | undefined {
  const { detail } = entry as { detail?: { kind?: number } };
  return detail?.kind;
}
