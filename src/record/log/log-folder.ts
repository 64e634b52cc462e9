/**
 * The folder of a log: its private key, and the newest checkpoint that it signed. A restored or rewritten database
 * cannot undo that checkpoint. The last ones of earlier logs are kept as `checkpoint.1`, `checkpoint.2` and so on.
 */
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { chmod, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createFolder } from "../../create-folder.ts";
import { codeOf } from "../../errors.ts";
import { readCheckpoint } from "../../signed-note.ts";
import { logNumberOf } from "./origin.ts";

/** The private key in PEM; null if the folder has none. */
export function readKey(folder: string): Promise<string | null> {
  return readIfThere(join(folder, "key.pem"));
}

/** Creates a private key, readable by this user alone, unless the folder has one. Returns the key. */
export async function makeKey(folder: string): Promise<string> {
  await createFolder(folder, 0o700);
  const { privateKey } = generateKeyPairSync("ed25519");
  const pem = privateKey.export({ type: "pkcs8", format: "pem" });
  try {
    await writeFile(join(folder, "key.pem"), pem, { mode: 0o600, flag: "wx", flush: true });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
  await syncFolder(folder);
  const kept = await readKey(folder);
  if (kept === null) throw new Error(`expected a key in ${folder}, found none`);
  return kept;
}

/** The newest checkpoint that was signed with this key; null before the first. */
export function readNewestNote(folder: string): Promise<string | null> {
  return readIfThere(join(folder, "checkpoint"));
}

/** A signed checkpoint in a folder. */
export interface KeptCheckpoint {
  note: string;
  origin: string;
  size: number;
}

/**
 * The newest checkpoint that was signed with this key, unchecked; null before the first.
 *
 * @throws Error if it is damaged
 */
export function readNewestCheckpoint(folder: string): Promise<KeptCheckpoint | null> {
  return readCheckpointFile(join(folder, "checkpoint"));
}

async function readCheckpointFile(path: string): Promise<KeptCheckpoint | null> {
  const note = await readIfThere(path);
  if (note === null) return null;
  try {
    const { origin, size } = readCheckpoint(note);
    return { note, origin, size };
  } catch (error) {
    throw new Error(`expected a signed checkpoint in ${path}, found another text: restore or remove the file`, {
      cause: error,
    });
  }
}

/**
 * Stores the newest checkpoint, and keeps the last one of the log before; both are on disk before this resolves. `replaced`
 * is the newest note so far. A flush can take longer than the caller's lock lasts, so `requireLock` is called right before
 * the file is replaced, and throws if the lock is lost.
 *
 * @throws Error if another process replaced the note meanwhile
 */
export async function keepNewestNote(
  folder: string,
  note: string,
  replaced: string | null,
  requireLock: () => Promise<unknown>,
): Promise<void> {
  const last = await readNewestCheckpoint(folder);
  if (last !== null && last.origin !== readCheckpoint(note).origin) await keepLast(folder, last);
  await replaceFile(join(folder, "checkpoint"), note, async () => {
    await requireLock();
    if ((await readNewestNote(folder)) !== replaced)
      throw new Error(
        `expected the newest checkpoint in ${folder} as it was read, found that another process replaced it`,
      );
  });
}

/** Keeps the last checkpoint of an earlier log, unless a larger one is kept. */
async function keepLast(folder: string, { note, origin, size }: KeptCheckpoint): Promise<void> {
  const path = join(folder, `checkpoint.${logNumberOf(origin)}`);
  const kept = await readCheckpointFile(path);
  if (kept === null || kept.size < size) await replaceFile(path, note);
}

/**
 * Replaces a file atomically: readers see the old text or the new one, which is on disk before this resolves.
 * `beforeReplace` can still refuse it, when the new text is on disk under a temporary name.
 */
export async function replaceFile(
  path: string,
  text: string,
  beforeReplace: () => Promise<unknown> = () => Promise.resolve(),
): Promise<void> {
  const next = `${path}.${randomUUID()}.next`;
  try {
    await writeFile(next, text, { mode: 0o600, flush: true });
    await chmod(next, 0o600);
    await beforeReplace();
    await rename(next, path);
  } catch (error) {
    await rm(next, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Persists the names of a folder's files: a power loss may otherwise undo a rename or a new file. */
async function syncFolder(folder: string): Promise<void> {
  const opened = await open(folder);
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}
