/**
 * What it costs to hold tables: loads the states of some, as a worker does before its first request after a take-over, then
 * of all, and counts its memory. To be run with --expose-gc.
 */
import { openPipeline } from "../../../src/db/client.ts";
import { createPasses, loadStates } from "../../../src/pass/passes.ts";

/** What {@link Wanted} tables cost. */
export interface TableMemory {
  /** Until the states of the first tables were in memory. */
  takeOverMs: number;
  takenOver: number;
  bytesPerTable: number;
}

/** Ids of tables, the first of which are taken over. */
export interface Wanted {
  databaseUrl: string;
  tableIds: number[];
  first: number;
}

const { databaseUrl, tableIds, first } = JSON.parse(process.argv[2] ?? "") as Wanted;
process.on("disconnect", () => process.exit());
const pipeline = openPipeline(databaseUrl, { name: "hold" });
const passes = createPasses(pipeline);
await loadStates(passes, tableIds.slice(0, 1)); // code is compiled and connected
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
