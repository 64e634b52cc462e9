/** A thread for tests of threads: runs what each task names. */
import { runTasks } from "../../src/thread.ts";

/** The tasks of the thread. */
export type TestTask = "count" | "fail" | "hang" | "fill memory" | "exit later";

let tasks = 0;

runTasks((task: TestTask) => {
  tasks += 1;
  if (task === "fail") throw new RangeError("expected another task");
  if (task === "hang") for (;;);
  if (task === "fill memory") for (const kept: number[][] = []; ;) kept.push(Array.from({ length: 10_000 }, () => 0.5));
  if (task === "exit later") {
    setImmediate(() => {
      throw new Error("the thread broke while idle");
    });
  }
  return tasks;
});
