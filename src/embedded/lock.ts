import { constants } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { createFolder } from "../create-folder.ts";
import { codeOf } from "../errors.ts";
import { processMark } from "./pids.ts";
import { run } from "./process.ts";

const claimShape = z.object({ pid: z.number().int().positive(), mark: z.string(), since: z.string() });

/** The holder of a data folder: `mark` distinguishes the process from a later one with the same pid, `since` is the time of the claim. */
export type Claim = z.infer<typeof claimShape>;

/**
 * Creates `dataDir`, if necessary, and claims it for this process alone. Returns a function that releases the claim.
 *
 * The claim is a kernel lock on DATA_DIR/lock. It ends with its process, however that ends, so no claim is stale and no
 * two processes can get it. The content of the file is for people and for `readClaim`.
 * @throws Error with the remedy if another process holds the folder, or if it cannot be written.
 */
export async function claimDataDir(dataDir: string): Promise<() => Promise<void>> {
  const folder = resolve(dataDir);
  const file = await openLock(folder);
  try {
    if (!(await lock(file))) throw new Error(await describeHolder(folder));
    await file.truncate(0);
    const claim: Claim = {
      pid: process.pid,
      mark: (await processMark(process.pid)) ?? "",
      since: new Date().toISOString(),
    };
    await file.write(`${JSON.stringify(claim)}\n`, 0);
  } catch (error) {
    await file.close();
    throw error;
  }
  let released = false;
  return async () => {
    if (released) return;
    released = true;
    // The file is not removed: a second process that has it open would hold a lock on a file that no one else opens.
    await file.truncate(0);
    await file.close();
  };
}

/** Reads the lock file of a data folder; its process may be dead. Null if the folder is not claimed. */
export async function readClaim(dataDir: string): Promise<Claim | null> {
  const text = await readFile(join(dataDir, "lock"), "utf8").catch(() => "");
  if (text.trim() === "") return null;
  const claim = claimShape.safeParse(parseJson(text));
  return claim.success ? claim.data : null;
}

async function openLock(folder: string): Promise<FileHandle> {
  const flags = constants.O_RDWR | constants.O_CREAT;
  try {
    // Others may only pass through: if root runs PostgreSQL as another user, that user must reach its folder.
    await createFolder(folder, 0o711);
    return await open(join(folder, "lock"), flags, 0o600);
  } catch (error) {
    throw new Error(
      `data folder ${folder} cannot be written (${codeOf(error)}): make it writable for user ${process.getuid?.()}, or set DATA_DIR to another folder`,
      { cause: error },
    );
  }
}

/** Locks the open file until this process closes it; false if another process has the lock. */
async function lock(file: FileHandle): Promise<boolean> {
  // Node has no flock(2). The lock belongs to the open file, not to a process, so a child that inherits the file can
  // take it for us.
  const perl = "open(my $f, '+<&=', 3) or exit 2; exit(flock($f, 2 | 4) ? 0 : 1)";
  const flock = await run({ command: "flock", args: ["-n", "3"] }, { inherit: file.fd });
  if (flock.code === 0 || flock.code === 1) return flock.code === 0;
  // macOS has no flock(1), and has Perl.
  const other = await run({ command: "perl", args: ["-e", perl] }, { inherit: file.fd });
  if (other.code === 0 || other.code === 1) return other.code === 0;
  throw new Error(
    `the data folder cannot be locked: neither flock (util-linux) nor perl works here (${flock.stderr.trim()})`,
  );
}

/**
 * The error message, with the holder. It may not have written its name yet, so this waits up to a second.
 */
async function describeHolder(folder: string): Promise<string> {
  for (let attempt = 0; attempt < 40; attempt++) {
    const claim = await readClaim(folder);
    if (claim !== null && (await processMark(claim.pid)) === claim.mark) {
      return `another roundhouse (pid ${claim.pid}, since ${claim.since}) is using ${folder}: stop it, or set DATA_DIR to another folder`;
    }
    await delay(25);
  }
  return `another roundhouse is using ${folder}: stop it, or set DATA_DIR to another folder`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
