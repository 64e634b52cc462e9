import { mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { codeOf } from "./errors.ts";

/**
 * Creates a folder and those above it that are missing. Node's recursive mkdir never returns for a path in `/proc`: it
 * repeats as long as the folder above exists and the new one is refused as missing.
 *
 * @throws Error of the file system, ENOENT if a folder cannot be created in one that exists
 */
export async function createFolder(path: string, mode = 0o777): Promise<void> {
  const missing: string[] = [];
  for (let folder = resolve(path); !(await isMade(folder, mode)); folder = dirname(folder)) missing.unshift(folder);
  for (const folder of missing) await makeOne(folder, mode);
}

/** Creates a folder, unless it exists. Returns false if the one above it is missing. */
async function isMade(folder: string, mode: number): Promise<boolean> {
  try {
    await makeOne(folder, mode);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT" && dirname(folder) !== folder) return false;
    throw error;
  }
}

async function makeOne(folder: string, mode: number): Promise<void> {
  try {
    await mkdir(folder, { mode });
  } catch (error) {
    if (codeOf(error) !== "EEXIST" || !(await stat(folder)).isDirectory()) throw error;
  }
}
