import type { Transaction } from "../../db/client.ts";
import { makeKey, readNewestCheckpoint } from "./log-folder.ts";
import { createLog, listLogs } from "./log-store.ts";
import { signerOf } from "../../signed-note.ts";
import { logNumberOf, originOf } from "./origin.ts";

/**
 * Begins another log, whose first entry names the last checkpoint of the previous log, and returns its origin. All
 * stored data is stated again in it. Its number is above those of the database and of the folder: the key must not sign
 * two logs of one origin.
 *
 * @throws Error if the checkpoint in the folder is damaged, or another log was declared at the same moment
 */
export async function declareLog(
  tx: Transaction,
  { folder, publicUrl, by, reason }: { folder: string; publicUrl: string | undefined; by: string; reason: string },
): Promise<string> {
  const [newest] = await listLogs(tx);
  const { publicKey } = signerOf("new", "log", await makeKey(folder));
  const kept = await readNewestCheckpoint(folder);
  // an emptied database had a first one
  const id = Math.max(newest?.id ?? 1, kept === null ? 1 : logNumberOf(kept.origin)) + 1;
  const origin = originOf(publicUrl, publicKey, id);
  const created = await createLog(tx, { id, origin, publicKey, by, reason });
  if (created === null)
    throw new Error("expected to declare the next log, found that another one was declared meanwhile");
  return origin;
}
