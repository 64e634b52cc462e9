import type { Sql } from "../../db/client.ts";
import { openCheckpoint } from "../../signed-note.ts";
import { type KeptCheckpoint, readNewestCheckpoint } from "./log-folder.ts";
import { findNewestCheckpoint, listLogs, type Log } from "./log-store.ts";
import { logNumberOf } from "./origin.ts";

/** The folder of a log and the public key in it. */
export interface KeyFolder {
  folder: string;
  publicKey: Buffer;
}

/**
 * The last checkpoint of the log before this one, for its first entry; empty if there is none. It is the larger of those in
 * the database, which may have been restored from a backup, and in the folder.
 *
 * @throws Error if the checkpoint in the folder is damaged
 */
export async function findPreviousNote(sql: Sql, log: Log, { folder, publicKey }: KeyFolder): Promise<string> {
  const before = (await listLogs(sql)).find(({ id }) => id < log.id) ?? null;
  const stored = before === null ? null : await findNewestCheckpoint(sql, before.id);
  const kept = await readNewestCheckpoint(folder);
  if (kept === null || !isOfEarlierLog(kept, { log, before, publicKey })) return stored?.note ?? "";
  const isLarger = stored === null || kept.origin !== before?.origin || kept.size > stored.size;
  return isLarger ? kept.note : stored.note;
}

/**
 * Whether the log before signed a checkpoint, or a later one that the database lost, whose key can only be the one at hand.
 * Any other one is not named: it cannot be checked, and an entry cannot be taken back.
 */
function isOfEarlierLog(
  { origin, note }: KeptCheckpoint,
  { log, before, publicKey }: { log: Log; before: Log | null; publicKey: Buffer },
): boolean {
  const number = logNumberOf(origin);
  const isLost = number > (before?.id ?? 0) && number < log.id;
  const key = isLost ? publicKey : before?.origin === origin ? before.publicKey : null;
  if (key === null) return false;
  try {
    openCheckpoint(note, { name: origin, type: "log", publicKey: key });
    return true;
  } catch {
    return false;
  }
}
