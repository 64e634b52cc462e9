import type { TableSettings } from "../houses/settings/settings.ts";
import { createThread, ThreadLimitError } from "../thread.ts";
import type { TrialTask } from "./trial-thread.ts";

const thread = createThread<TrialTask, boolean>(new URL("trial-thread.ts", import.meta.url), {
  deadlineMs: 10_000,
  idleMs: 120_000,
  maxTasks: 100,
  heapMb: 512, // bodies have at most 4 MiB, some 100 MB as objects
});

/**
 * Reads a stored payload in a thread first: its poll may have died over it. Gives null, or why the payload must not be read
 * in this process.
 */
export async function tryToRead(
  settings: TableSettings,
  payload: { body: Buffer; now: string; path: string },
): Promise<string | null> {
  try {
    await thread.run({ settings, ...payload });
    return null;
  } catch (error) {
    if (error instanceof ThreadLimitError) return `reading it was given up: ${error.message}`;
    return `its reader failed: ${error instanceof Error ? error.message : String(error)}`;
  }
}
