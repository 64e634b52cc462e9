import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { drawInteger } from "../../src/demo/draw.ts";
import type { ClockStep } from "./preload-process.ts";

/** One process of Roundhouse, kept alive as a supervisor would: whenever it ends, it is started again. */
export interface ManagedProcess {
  name: string;
  /** Where it answers; null while it does not. */
  url(): string | null;
  pid(): number | null;
  /** How often one of its processes has ended by now. */
  endings(): number;
  /** Kills it as the kernel would; it is started again after a second. */
  kill(): Promise<void>;
  /** Sets its clock so far ahead of the true one, or behind it: of the process that runs and of those that follow it. */
  setClock(aheadMs: number): void;
  /** Resident memory in bytes; null while there is no process. */
  residentBytes(): number | null;
  /** Ends it in order and keeps it ended until the returned function is called; then it is started again. */
  down(): Promise<() => void>;
  /** Makes it read its houses file again, as SIGHUP does. */
  reload(): void;
  /** Ends it in order; gives its exit code, which is 0 where it could stop within 20 s. */
  stop(): Promise<number | null>;
}

/** What every process is started with. */
export interface ProcessOptions {
  /** The checkout whose `src/start.js` is run. */
  root: string;
  /** Where logs go. */
  folder: string;
  /** Where each has a data folder of its own. */
  dataFolder: string;
  env: Record<string, string>;
}

const AGAIN_MS = 1_000;
const READY_MS = 240_000;
const STOP_MS = 25_000;
const BEFORE = new URL("preload-process.ts", import.meta.url).href;

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
  let endings = 0;
  let ready = Promise.withResolvers<void>();

  function begin(): void {
    if (isStopping || isDown) return;
    const { PATH = "", HOME = "" } = process.env;
    const own = { DATA_DIR: join(dataFolder, name), PORT: "0", WORKER_PORT: "0", SIMULATED_CLOCK_MS: String(clockMs) };
    const begun = spawn(process.execPath, ["--import", BEFORE, join(root, "src/start.js"), ...args, "--json"], {
      cwd: folder,
      env: { PATH, HOME, ...env, ...own },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    child = begun;
    let said = "";
    begun.stdout?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const [line, rest] = said.split("\n");
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
      endings += 1;
      log.write(`--- ${name} ended by ${signal ?? `exit code ${code}`}\n`);
      if (!isStopping && !isDown) setTimeout(begin, AGAIN_MS);
    });
  }

  /** Ends the process that runs, or the one that is about to, for good; gives its exit code. */
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

  async function becomesReady(): Promise<void> {
    const timeoutMs = new AbortController();
    const late = delay(READY_MS, undefined, { signal: timeoutMs.signal }).then(() => {
      throw new Error(`${name} was not ready within ${READY_MS / 1000} s; see ${name}.log in ${folder}`);
    });
    await Promise.race([ready.promise, late]).finally(() => timeoutMs.abort());
    await late.catch(() => undefined);
  }

  begin();
  try {
    await becomesReady();
  } catch (error) {
    await end();
    throw error;
  }
  return {
    name,
    url: () => url,
    pid: () => child?.pid ?? null,
    endings: () => endings,
    residentBytes() {
      const pid = child?.pid;
      if (pid === undefined) return null;
      const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(statusOf(pid)) ?? [];
      return kilobytes === undefined ? null : Number(kilobytes) * 1_024;
    },
    setClock(aheadMs) {
      clockMs = aheadMs;
      const step: ClockStep = { clockMs };
      // one that is about to end hears of it no more
      if (child?.connected === true) child.send(step, () => undefined);
    },
    async kill() {
      const killed = child;
      if (killed === null) return;
      if (url !== null) ready = Promise.withResolvers();
      url = null; // before it is gone, so that nobody takes its silence for that of one who lives
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

/** One of a crew, drawn. */
export function drawOne<Item>(items: readonly Item[], seed: number, ...purpose: readonly (string | number)[]): Item {
  const item = items[drawInteger(items.length, seed, ...purpose)];
  if (item === undefined) throw new Error("expected somebody to choose from");
  return item;
}

/** What the kernel tells of a process; empty where it has just ended. */
function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return "";
  }
}
