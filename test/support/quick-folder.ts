import { readFileSync, statfsSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What the servers of a run may write, with the clones of the database. */
const NEEDED_BYTES = 6_000_000_000;
const MEMORY = "/dev/shm";
let base: string | undefined;

/**
 * Makes a folder for servers that do not outlive a run: in memory if Linux has room there and lets programs run, else
 * among the temporary files. Clones of databases are a thousand files each; finding free inodes for them on a disk took
 * 10 % of the processor time in a profile of 8 s.
 */
export function makeQuickFolder(prefix: string): Promise<string> {
  base ??= isFit() ? MEMORY : tmpdir();
  return mkdtemp(join(base, prefix));
}

function isFit(): boolean {
  try {
    const mounted = readFileSync("/proc/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" "))
      .find(([, place, kind]) => place === MEMORY && kind === "tmpfs");
    if (mounted === undefined || mounted[3]?.split(",").includes("noexec")) return false;
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= NEEDED_BYTES;
  } catch {
    return false; // another system
  }
}
