/**
 * The folder of a log: its private key, and the newest checkpoint that it signed. A restored or rewritten database
 * cannot undo that checkpoint.
 */
import { generateKeyPairSync } from "node:crypto";
import { chmod, mkdir, open, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeOf } from "../../errors.ts";

/** The private key in PEM; null if the folder has none. */
export function readKey(folder: string): Promise<string | null> {
  return readIfThere(join(folder, "key.pem"));
}

/** Creates a private key, readable by this user alone, unless the folder has one. Returns the key. */
export async function makeKey(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
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

/** Stores the newest checkpoint; it is on disk before this resolves. */
export async function keepNewestNote(folder: string, note: string): Promise<void> {
  await replaceFile(join(folder, "checkpoint"), note);
}

/** Replaces a file atomically: readers see the old text or the new one, which is on disk before this resolves. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const next = `${path}.next`;
  await writeFile(next, text, { mode: 0o600, flush: true });
  await chmod(next, 0o600);
  await rename(next, path);
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
