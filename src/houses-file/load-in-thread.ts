import { UsageError } from "../errors.ts";
import { createThread } from "../thread.ts";
import type { Loaded, LoadTask } from "./load-thread.ts";
import type { HouseEntry } from "./load.ts";

/** For one file, which then ends the thread: its memory is needed once. */
const LIMITS = { deadlineMs: 60_000, idleMs: 1_000, maxTasks: 1, heapMb: 1_024 };

/**
 * Reads and checks a houses file without blocking the process.
 * @throws UsageError as `loadHouses` does; ThreadLimitError if it takes a minute or a gigabyte
 */
export async function loadHousesInThread(
  file: string,
  { allowPrivate }: { allowPrivate: boolean },
): Promise<HouseEntry[]> {
  const thread = createThread<LoadTask, Loaded>(new URL("load-thread.ts", import.meta.url), LIMITS);
  try {
    const loaded = await thread.run({ file, allowPrivate });
    if ("houses" in loaded) return loaded.houses;
    throw new UsageError(loaded.refused);
  } finally {
    await thread.close();
  }
}
