import { mkdir, statfs } from "node:fs/promises";
import { reasonOf } from "../../src/errors.ts";
import { run } from "../../src/embedded/process.ts";

/** A disk in memory (tmpfs) that can be filled. */
export interface Disk {
  /** Leaves only this many bytes free. */
  fill(roomBytes: number): Promise<void>;
  /** Restores the original size. */
  free(): Promise<void>;
}

/** Set in the process that runs in its own mount namespace. */
const MARKER = "SIMULATE_OWN_MOUNTS";
const TRY = 'mount -t tmpfs -o size=1m none "$1" && mount -o remount,size=2m "$1"';
/** As root, or as root of a user namespace. */
const WAYS = [["--mount"], ["--user", "--map-root-user", "--mount"]];
/** The used size can grow between `statfs` and the remount, which then fails. */
const ATTEMPTS = 50;

/**
 * Restarts this process in its own mount namespace (Linux, util-linux), where it can mount a disk for a folder without
 * being root; the mounts disappear with the last process of the namespace. Returns null if it runs in one already,
 * otherwise why that is impossible.
 */
export async function enterMountNamespace(): Promise<string | null> {
  if (process.env[MARKER] !== undefined) return null;
  let reason = "";
  for (const words of WAYS) {
    const { code, stderr } = await run({
      command: "unshare",
      args: [...words, "/bin/sh", "-c", TRY, "sh", import.meta.dirname],
    });
    reason = stderr.trim();
    if (code !== 0) continue;
    const { execve } = process;
    const env = { ...process.env, [MARKER]: "1" };
    const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
    if (execve === undefined) return "this version of Node has no process.execve";
    // exec keeps the process id, which the parent waits for
    execve("/bin/sh", ["sh", "-c", 'exec unshare "$@"', "sh", ...words, "--", ...again], env);
  }
  return reason.split("\n").at(-1) ?? "no unshare";
}

/** Whether this process can mount disks. */
export function isInMountNamespace(): boolean {
  return process.env[MARKER] !== undefined;
}

/**
 * Creates a folder and mounts a disk of `sizeBytes` there; returns null if nothing can be mounted.
 * @throws Error if the mount fails
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
 * Runs `mount` for this process and those that it starts.
 * @throws Error if `mount` fails
 */
export async function mount(args: string[]): Promise<void> {
  const { code, stderr } = await run({ command: "mount", args });
  if (code !== 0) throw new Error(`mount ${args.join(" ")}: ${stderr.trim() || reasonOf(code)}`);
}
