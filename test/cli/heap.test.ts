import { execFile } from "node:child_process";
import path from "node:path";
import { constants } from "node:perf_hooks";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { heapFlags } from "../../src/cli/run/heap.ts";

const { NODE_PERFORMANCE_GC_MAJOR: MAJOR, NODE_PERFORMANCE_GC_MINOR: MINOR } = constants;
const MB = 1 << 20;

describe("after a collection", () => {
  it("the young generation may grow while it is collected more than ten times per second, for five seconds", () => {
    const flagAfter = heapFlags();
    const collect = (times: number, fromMs: number, everyMs: number) =>
      Array.from({ length: times }, (_, at) =>
        flagAfter({ kind: MINOR, atMs: fromMs + at * everyMs, usedBytes: 50 * MB }),
      );
    const [fixed, grows] = ["--semi-space-growth-factor=1", "--semi-space-growth-factor=2"];
    expect(new Set(collect(50, 0, 10))).toEqual(new Set([fixed])); // as when a worker takes over its tables
    expect(collect(60, 500, 90).at(-1)).toBe(grows);
    expect(collect(60, 10_000, 110).at(-1)).toBe(fixed);
  });

  it("the heap may grow by 64 MB, from 40 to 100 percent, while all of it is collected every two seconds", () => {
    const flagAfter = heapFlags();
    const collect = (fromMs: number, everyMs: number, usedBytes: number) =>
      Array.from({ length: 11 }, (_, at) => flagAfter({ kind: MAJOR, atMs: fromMs + at * everyMs, usedBytes })).at(-1);
    expect(collect(0, 1_000, 128 * MB)).toBe("--heap-growing-percent=50");
    expect(collect(20_000, 1_000, 20 * MB)).toBe("--heap-growing-percent=100");
    expect(collect(40_000, 1_000, 400 * MB)).toBe("--heap-growing-percent=40");
    expect(collect(60_000, 2_100, 20 * MB)).toBe("--heap-growing-percent=40");
    expect(flagAfter({ kind: undefined, atMs: 90_000, usedBytes: MB })).toBeNull();
  });
});

/** A program that allocates about a megabyte per turn, half of which lives for thirty turns, next to a heap that stays. */
const PROGRAM = `
  import { setImmediate } from "node:timers/promises";
  import { constants, PerformanceObserver } from "node:perf_hooks";
  import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
  import { adaptHeap } from ${JSON.stringify(path.resolve("src/cli/run/heap.ts"))};
  const [turns, adapts] = process.argv.slice(1).map(Number);
  setFlagsFromString("--heap-growing-percent=40");
  setFlagsFromString("--semi-space-growth-factor=1");
  let full = 0;
  new PerformanceObserver((list) => {
    for (const { detail } of list.getEntriesByType("gc")) full += detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR;
  }).observe({ entryTypes: ["gc"] });
  if (adapts) adaptHeap();
  const [kept, base] = [[], new Array(3_000_000).fill(0)];
  for (let turn = 0; turn < turns; turn++) {
    const made = Array.from({ length: 10_000 }, (_, at) => ({ turn, at }));
    kept[turn % 30] = made.slice(5_000);
    await setImmediate();
  }
  const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size;
  console.log(JSON.stringify({ young: young / 2 ** 20, full, base: base.length }));`;

describe("a busy program", () => {
  it("gets a larger young generation", async () => {
    const [adapted, fixed] = await Promise.all([run(300, true), run(300, false)]);
    expect(adapted.young).toBeGreaterThan(4);
    expect(fixed.young).toBeLessThanOrEqual(4);
  });

  it("collects its whole heap less often", async () => {
    const small = ["--max-semi-space-size=1"];
    const [adapted, fixed] = await Promise.all([run(2_000, true, small), run(2_000, false, small)]);
    expect(fixed.full).toBeGreaterThan(20);
    expect(adapted.full).toBeLessThan(0.75 * fixed.full);
  });
});

/** Megabytes of the young generation at the end, and collections of the whole heap. */
async function run(turns: number, adapts: boolean, flags: readonly string[] = []) {
  const args = [...flags, "--input-type=module", "--eval", PROGRAM, `${turns}`, `${Number(adapts)}`];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout) as { young: number; full: number };
}
