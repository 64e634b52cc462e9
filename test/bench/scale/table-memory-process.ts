/**
 * Measures the cost of table states: loads those of some tables, as a worker does before its first request after a
 * take-over, then of all tables, and measures its memory. Needs --expose-gc.
 */
import { openPipeline } from "../../../src/db/client.ts";
import { createPasses, loadStates } from "../../../src/pass/passes.ts";

/** The cost of the {@link Wanted} tables. */
export interface TableMemory {
  /** The time to load the states of the first tables. */
  takeOverMs: number;
  takenOver: number;
  bytesPerTable: number;
}

/** The tables to load; the first ones are timed. */
export interface Wanted {
  databaseUrl: string;
  tableIds: number[];
  first: number;
}

const { databaseUrl, tableIds, first } = JSON.parse(process.argv[2] ?? "") as Wanted;
process.on("disconnect", () => process.exit());
const pipeline = openPipeline(databaseUrl, { name: "hold" });
const passes = createPasses(pipeline);
await loadStates(passes, tableIds.slice(0, 1)); // warm-up: compiles code and connects
passes.states.drop(tableIds);
const before = memoryNow();
const from = performance.now();
const { size: takenOver } = await loadStates(passes, tableIds.slice(0, first));
const takeOverMs = performance.now() - from;
await loadStates(passes, tableIds.slice(first));
const tableMemory: TableMemory = { takeOverMs, takenOver, bytesPerTable: (memoryNow() - before) / tableIds.length };
process.send?.(tableMemory);

function memoryNow(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
