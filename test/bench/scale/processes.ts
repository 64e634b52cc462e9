import { fork, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { join } from "node:path";

/** The checkout whose processes are measured. */
const ROOT = join(import.meta.dirname, "../../..");
const READY_MS = 180_000;
/** As in the image and docker-compose.yml. */
const SEMI_SPACE = { api: "--max-semi-space-size=8", worker: "--max-semi-space-size=32" };

/** A process of Roundhouse. */
export interface RoundhouseProcess {
  pid: number;
  url: string;
  stop(): Promise<void>;
}

/** Starts `roundhouse api` or `roundhouse worker`, and waits until it is ready. */
export async function startRoundhouse(
  name: string,
  args: readonly string[],
  { folder, env }: { folder: string; env: Record<string, string> },
): Promise<RoundhouseProcess> {
  const { PATH = "", HOME = "" } = process.env;
  const semiSpace = args[0] === "worker" ? SEMI_SPACE.worker : SEMI_SPACE.api;
  const child = spawn(process.execPath, [semiSpace, join(ROOT, "src/start.js"), ...args, "--json"], {
    cwd: folder,
    env: { PATH, HOME, ...env, DATA_DIR: join(folder, name), PORT: "0", WORKER_PORT: "0" },
    stdio: ["ignore", "pipe", openSync(join(folder, `${name}.log`), "a")],
  });
  const ended = once(child, "exit") as Promise<[number | null]>;
  let output = "";
  const ready = Promise.withResolvers<string>();
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    if (output.includes("\n")) ready.resolve((JSON.parse(output.split("\n")[0] ?? "") as { url: string }).url);
  });
  void ended.then(([code]) => ready.reject(new Error(`${name} ended with ${code}; see ${name}.log in ${folder}`)));
  const late = setTimeout(() => ready.reject(new Error(`${name} was not ready within ${READY_MS} ms`)), READY_MS);
  try {
    const url = await ready.promise;
    return { pid: child.pid ?? 0, url, stop: () => end(child, "SIGTERM") };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  } finally {
    clearTimeout(late);
  }
}

/** A helper of the bench in its own process. */
export interface Helper<Reply> {
  pid: number;
  /** Its first message. */
  first: unknown;
  /** Requests its measurements since the previous request. */
  ask(): Promise<Reply>;
  stop(): Promise<void>;
}

/** Starts a helper with a JSON argument, and waits for its first message. */
export async function startHelper<Reply>(
  file: string,
  given: unknown,
  execArgv: readonly string[] = [],
): Promise<Helper<Reply>> {
  const child = fork(new URL(file, import.meta.url), [JSON.stringify(given)], {
    stdio: "inherit",
    execArgv: [...process.execArgv, ...execArgv],
  });
  let isStopping = false;
  child.once("exit", (code) => {
    if (!isStopping) throw new Error(`${file} ended with ${code}`);
  });
  const [first] = (await once(child, "message")) as [unknown];
  return {
    pid: child.pid ?? 0,
    first,
    async ask() {
      const reply = once(child, "message") as Promise<[Reply]>;
      child.send("now");
      return (await reply)[0];
    },
    stop() {
      isStopping = true;
      return end(child, "SIGKILL");
    },
  };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  const late = setTimeout(() => child.kill("SIGKILL"), 25_000);
  child.kill(signal);
  await ended;
  clearTimeout(late);
}
