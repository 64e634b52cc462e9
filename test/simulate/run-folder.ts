import { spawn } from "node:child_process";
import { chmod, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, sep } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { processMark } from "../../src/embedded/pids.ts";
import { run } from "../../src/embedded/process.ts";

const PREFIX = "roundhouse-simulate-";
const OWNER = "owner.json";
/** Whoever has this is meant to be looked at, and stays. */
export const HISTORY_FILE = "history.txt";
/** What a simulation starts; a shell that somebody opened in its folder is none of them. */
const PROGRAMS = /^(?:node|postgres|redis-server|valkey-server)$/;

/** A folder of one run, which goes with it: `close` ends the watch over it. */
export interface RunFolder {
  folder: string;
  close(): void;
}

/**
 * Makes a folder that goes with this process. A watchdog sees to it, since nobody whom `kill -9` ends can: once this
 * process is gone, it ends those that still work in the folder and takes the folder away, unless a story was left in it.
 */
export async function makeRunFolder(name: string): Promise<RunFolder> {
  const folder = await mkdtemp(join(tmpdir(), `${PREFIX}${name}-`));
  await chmod(folder, 0o711); // PostgreSQL may have to run as somebody else, who passes through
  const owner = { pid: process.pid, mark: await processMark(process.pid) };
  await writeFile(join(folder, OWNER), JSON.stringify(owner));
  const watchdog = spawn(
    "/bin/sh",
    // reads until the other end is closed; a process of Node's that only waits would be forty megabytes
    [
      "-c",
      'cat > /dev/null; exec "$@"',
      "sh",
      process.execPath,
      join(import.meta.dirname, "watchdog-process.ts"),
      folder,
    ],
    { stdio: ["pipe", "ignore", "ignore"], detached: true },
  );
  watchdog.unref();
  watchdog.stdin.on("error", () => undefined);
  return { folder, close: () => watchdog.stdin.end() };
}

/** Takes away what simulations left behind that were killed together with their watchdogs, or before there were any. */
export async function removeAbandonedRuns(say: (line: string) => void): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue;
    const folder = join(tmpdir(), name);
    const owner = await readFile(join(folder, OWNER), "utf8").catch(() => null);
    if (owner === null) continue;
    const { pid, mark } = JSON.parse(owner) as { pid: number; mark: string | null };
    if ((await processMark(pid)) === mark) continue;
    if (await removeRun(folder)) say(`took away ${folder}, whose simulation was killed`);
  }
}

/** Ends what still works in the folder of a run that is over, and takes it away; false where it is kept for its story. */
export async function removeRun(folder: string): Promise<boolean> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const left = await processesIn(folder);
    if (left.length === 0) break;
    for (const pid of left) kill(pid);
    await delay(100);
  }
  if (await exists(join(folder, HISTORY_FILE))) return false;
  await removeFolder(folder);
  return true;
}

/** Takes a folder away, with whatever is mounted in it. */
export async function removeFolder(folder: string): Promise<void> {
  const mounts = await readFile("/proc/self/mountinfo", "utf8").catch(() => "");
  for (const line of mounts.split("\n")) {
    const at = line.split(" ")[4] ?? "";
    if (at === folder || at.startsWith(folder + sep)) await run({ command: "umount", args: ["-l", at] });
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

async function processesIn(folder: string): Promise<number[]> {
  const found: number[] = [];
  for (const name of await readdir("/proc").catch(() => [])) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    const [place, program] = await Promise.all(
      ["cwd", "exe"].map((link) => readlink(join("/proc", name, link)).catch(() => "")),
    );
    if (place === undefined || program === undefined) continue;
    const isInside = place === folder || place === `${folder} (deleted)` || place.startsWith(folder + sep);
    if (isInside && PROGRAMS.test(basename(program))) found.push(Number(name));
  }
  return found;
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // it has ended by itself meanwhile
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
