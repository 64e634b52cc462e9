import { execFile } from "node:child_process";
import path from "node:path";
import { constants } from "node:perf_hooks";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { heapFlags, heapSurplus } from "../../src/cli/run/heap.ts";

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

describe("pages are given back", () => {
  it("when 64 MB less are live than before, at most every ten minutes", () => {
    const hasSurplus = heapSurplus(600_000);
    const collect = (atMs: number, usedMb: number, kind = MAJOR) => hasSurplus({ kind, atMs, usedBytes: usedMb * MB });
    expect([collect(0, 200), collect(1_000, 137), collect(2_000, 20, MINOR)]).toEqual([false, false, false]);
    expect([collect(3_000, 136), collect(4_000, 60)]).toEqual([true, false]);
    expect([collect(602_000, 60), collect(603_000, 60), collect(604_000, 60)]).toEqual([false, true, false]);
  });

  it("in a program that still allocates", async () => {
    expect(await measure(SHRINKS)).toBeGreaterThanOrEqual(32);
  });
});

/** A program of which ever more is live, then little, until it has much less; it prints how many megabytes less. */
const SHRINKS = `
  import { setImmediate } from "node:timers/promises";
  import { adaptHeap } from ${JSON.stringify(path.resolve("src/cli/run/heap.ts"))};
  adaptHeap(100);
  let kept = [];
  let [largest, now] = [0, 0];
  for (let turn = 0; turn < 5_000 && largest - now < 32; turn++) {
    kept.push(Array.from({ length: 10_000 }, (_, at) => ({ turn, at, text: turn + " " + at })));
    if (turn >= 300) kept = kept.slice(-20);
    await setImmediate();
    now = process.memoryUsage.rss() / 2 ** 20;
    largest = Math.max(largest, now);
  }
  console.log(largest - now);`;

/** A program that allocates about a megabyte per turn, half of which lives for thirty turns. */
const BUSY = `
  import { setImmediate } from "node:timers/promises";
  import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
  import { adaptHeap } from ${JSON.stringify(path.resolve("src/cli/run/heap.ts"))};
  setFlagsFromString("--semi-space-growth-factor=1");
  if (process.argv[1] === "adapts") adaptHeap();
  const kept = [];
  for (let turn = 0; turn < 300; turn++) {
    const made = Array.from({ length: 10_000 }, (_, at) => ({ turn, at }));
    kept[turn % 30] = made.slice(5_000);
    await setImmediate();
  }
  console.log(getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size / 2 ** 20);`;

it("a busy program gets a larger young generation", async () => {
  const [adapted, fixed] = await Promise.all([measure(BUSY, "adapts"), measure(BUSY, "does not")]);
  expect(adapted).toBeGreaterThan(fixed);
});

/** The number that a program prints. */
async function measure(program: string, how = ""): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program, how]);
  return Number(stdout);
}
