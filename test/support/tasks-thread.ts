/** A thread for tests of threads: runs what each task names. */
import { getHeapSpaceStatistics } from "node:v8";
import { runTasks } from "../../src/thread.ts";

/** The tasks of the thread. */
export type TestTask = "count" | "fail" | "hang" | "fill memory" | "make garbage" | "exit later";

let tasks = 0;

runTasks((task: TestTask) => {
  tasks += 1;
  if (task === "fail") throw new RangeError("expected another task");
  if (task === "hang") for (;;);
  if (task === "fill memory") for (const kept: number[][] = []; ;) kept.push(Array.from({ length: 10_000 }, () => 0.5));
  if (task === "make garbage") return megabytesForNewObjects();
  if (task === "exit later") {
    setImmediate(() => {
      throw new Error("the thread broke while idle");
    });
  }
  return tasks;
});

/** The megabytes that new objects take at most, as V8 gave them to this thread, after it made many that were soon dropped. */
function megabytesForNewObjects(): number {
  for (let times = 0; times < 300; times += 1) Array.from({ length: 20_000 }, (_, at) => ({ at }));
  const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space");
  return (space?.space_size ?? Infinity) / 2 ** 20;
}
