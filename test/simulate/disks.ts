import { mkdir, statfs } from "node:fs/promises";
import { reasonOf } from "../../src/errors.ts";
import { run } from "../../src/embedded/process.ts";

/** A disk of a simulation's own, in memory, which can be made to be full. */
export interface Disk {
  /** Leaves room for so many bytes more. */
  fill(roomBytes: number): Promise<void>;
  /** Makes room again. */
  free(): Promise<void>;
}

/** Said to the process that goes on in a world of its own. */
const OWN = "SIMULATE_OWN_MOUNTS";
const TRY = 'mount -t tmpfs -o size=1m none "$1" && mount -o remount,size=2m "$1"';
/** As root, or as one who is root in a world of his own. */
const WAYS = [["--mount"], ["--user", "--map-root-user", "--mount"]];
/** What is used grows while it is looked at. */
const ATTEMPTS = 50;

/**
 * Goes on, as the same process, where nobody else sees what it mounts (Linux, util-linux): then a folder can be a disk
 * of its own, which takes no root, and which is gone with the last process that has it. Gives why it cannot be done.
 */
export async function enterMountNamespace(): Promise<string | null> {
  if (process.env[OWN] !== undefined) return null;
  let reason = "";
  for (const words of WAYS) {
    const { code, stderr } = await run({
      command: "unshare",
      args: [...words, "/bin/sh", "-c", TRY, "sh", import.meta.dirname],
    });
    reason = stderr.trim();
    if (code !== 0) continue;
    const { execve } = process;
    const env = { ...process.env, [OWN]: "1" };
    const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
    if (execve === undefined) return "this Node cannot go on as another program";
    // replaces this process: what starts us goes on waiting for the same one
    execve("/bin/sh", ["sh", "-c", 'exec unshare "$@"', "sh", ...words, "--", ...again], env);
  }
  return reason.split("\n").at(-1) ?? "no unshare";
}

/** Whether anything can be mounted. */
export function isInMountNamespace(): boolean {
  return process.env[OWN] !== undefined;
}

/**
 * Makes a folder, and where that can be done a disk of its own with room for so many bytes.
 * @throws Error where it cannot be mounted though mounting was seen to work.
 */
export async function makeDisk(folder: string, sizeBytes: number): Promise<Disk | null> {
  await mkdir(folder, { mode: 0o711 });
  if (!isInMountNamespace()) return null;
  await mount(["-t", "tmpfs", "-o", `size=${sizeBytes},mode=711`, "none", folder]);
  return {
    async fill(roomBytes) {
      for (let attempt = 1; ; attempt++) {
        const { bsize, blocks, bfree } = await statfs(folder);
        try {
          return await mount(["-o", `remount,size=${(blocks - bfree) * bsize + roomBytes}`, folder]);
        } catch (error) {
          if (attempt === ATTEMPTS) throw error;
        }
      }
    },
    free: () => mount(["-o", `remount,size=${sizeBytes}`, folder]),
  };
}

/**
 * Mounts something that this process and those that it starts see.
 * @throws Error if `mount` fails
 */
export async function mount(args: string[]): Promise<void> {
  const { code, stderr } = await run({ command: "mount", args });
  if (code !== 0) throw new Error(`mount ${args.join(" ")}: ${stderr.trim() || reasonOf(code)}`);
}
