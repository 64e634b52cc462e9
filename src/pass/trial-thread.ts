/** Reads a payload on trial: one that kills or hangs its reader does so to this thread alone. */
import { adapterOf } from "../houses/adapters/index.ts";
import type { TableSettings } from "../houses/settings/settings.ts";
import { answerTasks } from "../thread.ts";

/** A body, and how its table reads it. */
export interface TrialTask {
  settings: TableSettings;
  body: Uint8Array;
  now: string;
  path: string;
}

answerTasks(({ settings, body, now, path }: TrialTask): boolean => {
  const { buffer, byteOffset, byteLength } = body;
  return adapterOf(settings).read(settings.feed, Buffer.from(buffer, byteOffset, byteLength), now, { path }).ok;
});
