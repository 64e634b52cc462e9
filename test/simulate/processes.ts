import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { drawInteger } from "../../src/demo/draw.ts";
import type { ClockStep } from "./preload-process.ts";

/** A Roundhouse process that is restarted whenever it exits, as by a supervisor. */
export interface ManagedProcess {
  name: string;
  /** Its base URL; null while it is not ready. */
  url(): string | null;
  pid(): number | null;
  /** How often it has exited. */
  exits(): number;
  /** Kills it with SIGKILL; it is restarted after a second. */
  kill(): Promise<void>;
  /** Sets its clock ahead of the true one, or behind if negative, also after restarts. */
  setClock(aheadMs: number): void;
  /** Resident memory; null while there is no process. */
  residentBytes(): number | null;
  /** Shuts it down until the returned function is called, which starts it again. */
  down(): Promise<() => void>;
  /** Makes it reload its houses file, by SIGHUP. */
  reload(): void;
  /** Shuts it down permanently. Returns its exit code, which is 0 if it stopped within 20 s. */
  stop(): Promise<number | null>;
}

/** Settings of all processes. */
export interface ProcessOptions {
  /** The checkout whose `src/start.js` is run. */
  root: string;
  /** The folder of the logs. */
  folder: string;
  /** The folder in which each process has its data folder. */
  dataFolder: string;
  env: Record<string, string>;
}

const RESTART_AFTER_MS = 1_000;
const READY_MS = 240_000;
const STOP_MS = 25_000;
const PRELOAD = new URL("preload-process.ts", import.meta.url).href;

/** Starts one process and waits until it is ready. */
export async function startProcess(
  name: string,
  args: readonly string[],
  options: ProcessOptions,
): Promise<ManagedProcess> {
  const { root, folder, dataFolder, env } = options;
  const log = createWriteStream(join(folder, `${name}.log`), { flags: "a" });
  let child: ChildProcess | null = null;
  let url: string | null = null;
  let clockMs = 0;
  let isStopping = false;
  let isDown = false;
  let exits = 0;
  let ready = Promise.withResolvers<void>();

  function begin(): void {
    if (isStopping || isDown) return;
    const { PATH = "", HOME = "" } = process.env;
    const own = { DATA_DIR: join(dataFolder, name), PORT: "0", WORKER_PORT: "0", SIMULATED_CLOCK_MS: String(clockMs) };
    const begun = spawn(process.execPath, ["--import", PRELOAD, join(root, "src/start.js"), ...args, "--json"], {
      cwd: folder,
      env: { PATH, HOME, ...env, ...own },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    child = begun;
    let output = "";
    begun.stdout?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      const [line, rest] = output.split("\n");
      if (url !== null || rest === undefined) return;
      url = (JSON.parse(line ?? "") as { url: string }).url;
      ready.resolve();
    });
    begun.stderr?.pipe(log, { end: false });
    begun.on("error", (error) => log.write(`--- ${name}: ${error.message}\n`));
    begun.once("exit", (code, signal) => {
      if (url !== null) ready = Promise.withResolvers();
      url = null;
      child = null;
      exits += 1;
      log.write(`--- ${name} ended by ${signal ?? `exit code ${code}`}\n`);
      if (!isStopping && !isDown) setTimeout(begin, RESTART_AFTER_MS);
    });
  }

  /** Stops the current process, or the one that is about to start, without a restart. Returns its exit code. */
  async function end(): Promise<number | null> {
    while (child === null && !isStopping && !isDown) await delay(50);
    isStopping = true;
    return terminate();
  }

  async function terminate(): Promise<number | null> {
    const stopped = child;
    if (stopped === null) return null;
    const ended = once(stopped, "exit") as Promise<[number | null]>;
    if (url !== null) ready = Promise.withResolvers();
    url = null;
    stopped.kill("SIGTERM");
    const late = setTimeout(() => stopped.kill("SIGKILL"), STOP_MS);
    const [code] = await ended;
    clearTimeout(late);
    return code;
  }

  async function waitUntilReady(): Promise<void> {
    const timer = new AbortController();
    const late = delay(READY_MS, undefined, { signal: timer.signal }).then(() => {
      throw new Error(`${name} was not ready within ${READY_MS / 1000} s; see ${name}.log in ${folder}`);
    });
    await Promise.race([ready.promise, late]).finally(() => timer.abort());
    await late.catch(() => undefined);
  }

  begin();
  try {
    await waitUntilReady();
  } catch (error) {
    await end();
    throw error;
  }
  return {
    name,
    url: () => url,
    pid: () => child?.pid ?? null,
    exits: () => exits,
    residentBytes() {
      const pid = child?.pid;
      if (pid === undefined) return null;
      const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(statusOf(pid)) ?? [];
      return kilobytes === undefined ? null : Number(kilobytes) * 1_024;
    },
    setClock(aheadMs) {
      clockMs = aheadMs;
      const step: ClockStep = { clockMs };
      // the process may be exiting: a restarted one gets the clock from its environment
      if (child?.connected === true) child.send(step, () => undefined);
    },
    async kill() {
      const killed = child;
      if (killed === null) return;
      if (url !== null) ready = Promise.withResolvers();
      url = null; // before the kill: a call that fails from now on is no violation
      killed.kill("SIGKILL");
      await once(killed, "exit");
    },
    async down() {
      while (child === null && !isStopping) await delay(50);
      isDown = true;
      await terminate();
      return () => {
        isDown = false;
        begin();
      };
    },
    reload() {
      child?.kill("SIGHUP");
    },
    async stop() {
      const code = await end();
      log.end();
      return code;
    },
  };
}

/** Draws one item by the seed. */
export function drawOne<Item>(items: readonly Item[], seed: number, ...purpose: readonly (string | number)[]): Item {
  const item = items[drawInteger(items.length, seed, ...purpose)];
  if (item === undefined) throw new Error("expected an item to draw, got an empty list");
  return item;
}

/** The status file of a process; empty if it has exited. */
function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return "";
  }
}
