/**
 * The folder of a log: its private key, and the newest checkpoint that it signed. A restored or rewritten database
 * cannot undo that checkpoint.
 */
import { generateKeyPairSync } from "node:crypto";
import { chmod, mkdir, open, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
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
  const opened = await open(folder);
  try {
    await opened.sync(); // persists the rename too
  } finally {
    await opened.close();
  }
}

/** Replaces a file atomically: readers see the old text or the new one. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const next = `${path}.next`;
  await writeFile(next, text, { mode: 0o600, flush: true });
  await chmod(next, 0o600);
  await rename(next, path);
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}
