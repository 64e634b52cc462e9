import { createThread } from "../../src/thread.ts";
import type { LeaksTask } from "./leaks-thread.ts";

/** How many more objects there are after the connections to a database did something. */
export async function countLeaks(task: LeaksTask): Promise<number> {
  const thread = createThread<LeaksTask, number>(new URL("leaks-thread.ts", import.meta.url), {
    deadlineMs: 50_000,
    idleMs: 1_000,
    maxTasks: 1,
    heapMb: 256,
  });
  try {
    return await thread.run(task);
  } finally {
    await thread.close();
  }
}
