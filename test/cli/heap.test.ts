import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const HEAP = path.resolve("src/cli/run/heap.ts");

/** A program that allocates about a megabyte per turn, half of which lives for thirty turns, next to a heap that stays. */
const PROGRAM = `
  import { setTimeout } from "node:timers/promises";
  import { constants, PerformanceObserver } from "node:perf_hooks";
  import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
  import { adaptHeap } from ${JSON.stringify(HEAP)};
  const [turns, pauseMs, adapts] = process.argv.slice(1).map(Number);
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
    await setTimeout(pauseMs);
  }
  const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size;
  console.log(JSON.stringify({ young: young / 2 ** 20, full, base: base.length }));`;

it("grows the young generation of a busy program, and not that of one with little to do", async () => {
  const [busy, quiet] = await Promise.all([run({ turns: 300, pauseMs: 0 }), run({ turns: 25, pauseMs: 130 })]);
  expect(busy.young).toBeGreaterThan(4);
  expect(quiet.young).toBeLessThanOrEqual(4);
});

it("collects the whole heap of a busy program less often", async () => {
  const small = ["--max-semi-space-size=1"];
  const given = { turns: 2_000, pauseMs: 0, flags: small };
  const [adapted, fixed] = await Promise.all([run(given), run({ ...given, adapts: false })]);
  expect(fixed.full).toBeGreaterThan(20);
  expect(adapted.full).toBeLessThan(0.75 * fixed.full);
});

interface Given {
  turns: number;
  pauseMs: number;
  adapts?: boolean;
  flags?: readonly string[];
}

/** Megabytes of the young generation at the end, and collections of the whole heap. */
async function run({ turns, pauseMs, adapts = true, flags = [] }: Given): Promise<{ young: number; full: number }> {
  const args = [...flags, "--input-type=module", "--eval", PROGRAM, ...[turns, pauseMs, Number(adapts)].map(String)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout) as { young: number; full: number };
}
