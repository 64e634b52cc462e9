import { chmod, readdir, readFile, readlink, realpath, rm } from "node:fs/promises";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { makeQuickFolder } from "../support/quick-folder.ts";

const urls = z.object({ databaseUrl: z.string(), redisUrl: z.string() });

/**
 * What a test may do with an instance that runs in a process of its own; `kill` waits for its end and gives the exit
 * code.
 */
export interface Holder {
  pid: number;
  databaseUrl: string;
  redisUrl: string;
  kill(signal: NodeJS.Signals): Promise<number | null>;
}

/** A folder for one test, gone after it. Without a link in its path, as the servers see it. */
export async function makeFolder(): Promise<string> {
  const folder = await realpath(await makeQuickFolder("roundhouse-embedded-"));
  await chmod(folder, 0o711); // PostgreSQL may run as another user
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/**
 * Starts the servers of a data folder from a process of its own, with another PATH if one is given, and waits until
 * they are ready.
 */
export async function startHolder(dataDir: string, searchPath = process.env["PATH"]): Promise<Holder> {
  const script = fileURLToPath(new URL("./holder.ts", import.meta.url));
  const child = spawn(process.execPath, [script, dataDir], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, PATH: searchPath },
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  const early = once(child, "exit").then(([code, signal]) => {
    throw new Error(`expected a holder that prints its URLs, it ended with ${code ?? signal}`);
  });
  early.catch(() => undefined); // after the line, its end is no failure
  const [line] = await Promise.race([once(createInterface(child.stdout), "line"), early]);
  const { databaseUrl, redisUrl } = urls.parse(JSON.parse(String(line)));
  return {
    pid: child.pid ?? 0,
    databaseUrl,
    redisUrl,
    kill: async (signal) => {
      const exited = once(child, "exit");
      child.kill(signal);
      await exited;
      return child.exitCode;
    },
  };
}

/**
 * The processes that show the folder in their working directory or command line, as pids with their command lines
 * (Linux).
 */
export async function processesOf(folder: string): Promise<Map<number, string>> {
  const found = new Map<number, string>();
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number)) {
    const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    const place = await readlink(`/proc/${pid}/cwd`).catch(() => "");
    if (pid !== process.pid && (command.includes(folder) || place.startsWith(folder))) found.set(pid, command);
  }
  return found;
}

/** Keeps what servers state, except that they start slowly, which a busy machine decides. */
export function keepLines(said: string[]): (line: string) => void {
  return (line) => {
    if (!line.includes("is still starting")) said.push(line);
  };
}
