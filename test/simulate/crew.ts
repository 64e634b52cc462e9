import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { drawInteger } from "../../src/houses/demo/draw.ts";

/** One process of Roundhouse, kept alive as a supervisor would: whenever it ends, it is started again. */
export interface Member {
  name: string;
  /** Where it answers; null while it does not. */
  url(): string | null;
  /** Kills it as the kernel would; it is started again after a second. */
  kill(): Promise<void>;
  /** Its resident memory in bytes; null while there is no process. */
  residentBytes(): number | null;
  /** Ends it in order; gives its exit code, which is 0 where it could stop within 20 s. */
  stop(): Promise<number | null>;
}

/** What every process is started with. */
export interface CrewOptions {
  /** The checkout whose `src/start.js` is run. */
  root: string;
  folder: string;
  env: Record<string, string>;
}

const AGAIN_MS = 1_000;
const READY_MS = 120_000;

/** Starts one process and waits until it is ready. */
export async function startMember(
  name: string,
  args: readonly string[],
  { root, folder, env }: CrewOptions,
): Promise<Member> {
  const log = createWriteStream(join(folder, `${name}.log`), { flags: "a" });
  let child: ChildProcess | null = null;
  let url: string | null = null;
  let isStopping = false;
  let ready = Promise.withResolvers<void>();

  function begin(): void {
    const { PATH = "", HOME = "" } = process.env;
    const begun = spawn(process.execPath, [join(root, "src/start.js"), ...args, "--json"], {
      cwd: folder,
      env: { PATH, HOME, ...env, DATA_DIR: join(folder, name), PORT: "0", WORKER_PORT: "0" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    child = begun;
    let said = "";
    begun.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const [line, rest] = said.split("\n");
      if (url !== null || rest === undefined) return;
      url = (JSON.parse(line ?? "") as { url: string }).url;
      ready.resolve();
    });
    begun.stderr.pipe(log, { end: false });
    begun.once("exit", (code, signal) => {
      url = null;
      child = null;
      log.write(`--- ${name} ended by ${signal ?? `exit code ${code}`}\n`);
      if (isStopping) return;
      ready = Promise.withResolvers();
      setTimeout(begin, AGAIN_MS);
    });
  }

  process.once("exit", () => child?.kill("SIGKILL")); // whoever stops the simulation leaves nothing behind
  begin();
  await Promise.race([
    ready.promise,
    delay(READY_MS, undefined, { ref: false }).then(() => {
      throw new Error(`${name} was not ready within ${READY_MS / 1000} s; see ${name}.log in ${folder}`);
    }),
  ]);
  return {
    name,
    url: () => url,
    residentBytes() {
      const pid = child?.pid;
      if (pid === undefined) return null;
      const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
      return kilobytes === undefined ? null : Number(kilobytes) * 1_024;
    },
    async kill() {
      const killed = child;
      if (killed === null) return;
      url = null; // before it is gone, so that nobody takes its silence for that of one who lives
      killed.kill("SIGKILL");
      await once(killed, "exit");
    },
    async stop() {
      isStopping = true;
      while (child === null) await delay(50);
      const stopped = child;
      const ended = once(stopped, "exit") as Promise<[number | null]>;
      stopped.kill("SIGTERM");
      const late = setTimeout(() => stopped.kill("SIGKILL"), 25_000);
      const [code] = await ended;
      clearTimeout(late);
      log.end();
      return code;
    },
  };
}

/** One of a crew, drawn. */
export function oneOf<Item>(items: readonly Item[], seed: number, ...purpose: readonly (string | number)[]): Item {
  const item = items[drawInteger(items.length, seed, ...purpose)];
  if (item === undefined) throw new Error("expected somebody to choose from");
  return item;
}
