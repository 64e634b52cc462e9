import { statfs } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { codeOf } from "../errors.ts";
import { LEAST_FREE_SHARE } from "./limits.ts";

/** The space of the disk a folder is on, in bytes; of its nearest parent where the folder is not there yet. */
export async function readDisk(folder: string): Promise<{ free: number; total: number }> {
  const path = resolve(folder);
  try {
    const { bavail, blocks, bsize } = await statfs(path);
    return { free: bavail * bsize, total: blocks * bsize };
  } catch (error) {
    if (codeOf(error) !== "ENOENT" || dirname(path) === path) throw error;
    return readDisk(dirname(path));
  }
}

/** What to do about a disk that is nearly full. */
export const DISK_ADVICE =
  "free space or use a larger disk; a lower PAYLOAD_RETENTION_HOURS deletes only payloads of some days, while rounds, forecasts, scores and the log are kept permanently";

/** One sentence where the disk is nearly full, else null. */
export function diskProblem(folder: string, { free, total }: { free: number; total: number }): string | null {
  if (total === 0 || free >= total * LEAST_FREE_SHARE) return null;
  const percent = ((free / total) * 100).toFixed(1);
  return `the disk of ${folder} has ${percent} % free (${gigabytes(free)} of ${gigabytes(total)} GB), expected at least ${LEAST_FREE_SHARE * 100} %; ${DISK_ADVICE}`;
}

function gigabytes(bytes: number): string {
  return (bytes / 1e9).toFixed(1);
}
