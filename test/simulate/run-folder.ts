import { spawn } from "node:child_process";
import { chmod, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, sep } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { processMark } from "../../src/embedded/pids.ts";
import { run } from "../../src/embedded/process.ts";

const PREFIX = "roundhouse-simulate-";
const OWNER = "owner.json";
/** A folder with this file is kept for diagnosis. */
export const HISTORY_FILE = "history.txt";
/** Only these programs are killed; a shell that an operator opened in the folder is not. */
const PROGRAMS = /^(?:node|postgres|redis-server|valkey-server)$/;

/** The folder of one run; `close` ends its watchdog. */
export interface RunFolder {
  folder: string;
  close(): void;
}

/**
 * Creates a folder that is removed when this process ends, also by `kill -9`: a watchdog process then kills the
 * processes that still run in the folder and removes it, unless it contains a history file.
 */
export async function makeRunFolder(name: string): Promise<RunFolder> {
  const folder = await mkdtemp(join(tmpdir(), `${PREFIX}${name}-`));
  await chmod(folder, 0o711); // PostgreSQL may run as another user
  const owner = { pid: process.pid, mark: await processMark(process.pid) };
  await writeFile(join(folder, OWNER), JSON.stringify(owner));
  const watchdog = spawn(
    "/bin/sh",
    // `cat` waits until stdin is closed: a waiting Node process would take 40 MB
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

/** Removes the folders of simulations that were killed together with their watchdogs. */
export async function removeAbandonedRuns(say: (line: string) => void): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue;
    const folder = join(tmpdir(), name);
    const owner = await readFile(join(folder, OWNER), "utf8").catch(() => null);
    if (owner === null) continue;
    const { pid, mark } = JSON.parse(owner) as { pid: number; mark: string | null };
    if ((await processMark(pid)) === mark) continue;
    if (await removeRun(folder)) say(`removed ${folder}, whose simulation was killed`);
  }
}

/** Kills the processes that still run in a folder and removes it; false if it is kept because of its history file. */
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

/** Removes a folder after unmounting everything in it. */
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
    // it has exited by itself
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
