import { spawn } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";

/**
 * A program to start. Without `env` it gets ours; with `uid` and `gid` it runs as that user, which only root may ask
 * for.
 */
export interface Program {
  command: string;
  args: string[];
  env?: Record<string, string>;
  cwd?: string;
  uid?: number;
  gid?: number;
}

/** The outcome of a program: `code` is null if a signal or a failed start ended it; `stderr` then has the reason. */
export interface Outcome {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A server that runs next to this process. `exited` settles once, with a text about its end; it never rejects. */
export interface RunningServer {
  pid: number;
  exited: Promise<string>;
  hasExited(): boolean;
  signal(name: NodeJS.Signals): void;
}

/** Signals in their order, each with the time it has to work. */
export type StopSteps = readonly { signal: NodeJS.Signals; waitMs: number }[];

/**
 * Runs a short program to its end and never throws: a program that is missing or took longer than `timeoutMs` has
 * code null.
 */
export async function run(
  program: Program,
  options: { input?: string; timeoutMs?: number; inherit?: number } = {},
): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(program.command, program.args, {
      ...place(program),
      detached: true,
      stdio: ["pipe", "pipe", "pipe", ...(options.inherit === undefined ? [] : [options.inherit])],
      timeout: options.timeoutMs ?? 60_000,
      killSignal: "SIGKILL",
    });
    let stdout = "";
    let stderr = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    // A program that ends before it has read its input breaks the pipe; its exit code is the result.
    child.stdin?.on("error", () => undefined).end(options.input ?? "");
    child.once("error", (error) => resolve({ code: null, stdout, stderr: `${stderr}${error.message}` }));
    child.once("close", (code, signal) => {
      resolve({ code, stdout, stderr: signal === null ? stderr : `${stderr}ended by ${signal}` });
    });
  });
}

/**
 * Starts a server that writes to the open file `logFd`. It has its own session, so that Ctrl-C reaches the app
 * alone, which then stops it in order. When our process exits without doing so, the server gets `lastSignal`; a kill
 * -9 of ours is the business of setpriv.
 */
export async function startServer(
  program: Program,
  options: { logFd: number; input?: string; lastSignal: NodeJS.Signals },
): Promise<RunningServer> {
  const child = spawn(program.command, program.args, {
    ...place(program),
    detached: true,
    stdio: [options.input === undefined ? "ignore" : "pipe", options.logFd, options.logFd],
  });
  let ended = false;
  const atExit = () => child.kill(options.lastSignal);
  const exited = new Promise<string>((resolve) => {
    const end = (how: string) => {
      ended = true;
      process.off("exit", atExit);
      resolve(how);
    };
    child.once("error", (error) => end(`could not be started: ${error.message}`));
    child.once("exit", (code, signal) => end(signal === null ? `exit code ${code}` : `ended by ${signal}`));
  });
  process.on("exit", atExit);
  child.stdin?.on("error", () => undefined).end(options.input);
  if (child.pid === undefined) throw new Error(`${program.command} ${await exited}`);
  return {
    pid: child.pid,
    exited,
    hasExited: () => ended,
    signal: (name) => {
      child.kill(name);
    },
  };
}

/**
 * Sends the signals one after the other, each with its time to work, until the server is gone; SIGKILL is the last
 * word.
 */
export async function stopServer(server: RunningServer, steps: StopSteps): Promise<void> {
  for (const { signal, waitMs } of steps) {
    if (server.hasExited()) return;
    server.signal(signal);
    const patience = new AbortController();
    await Promise.race([server.exited, delay(waitMs, undefined, { signal: patience.signal }).catch(() => undefined)]);
    patience.abort();
  }
  if (!server.hasExited()) server.signal("SIGKILL");
  await server.exited;
}

/**
 * The absolute paths of the named programs; missing ones are left out. Looks in `searchPath`, which has the form of PATH,
 * or in PATH. The shell resolves them, so that nothing here reads the environment.
 */
export async function findPrograms(names: string[], searchPath?: string): Promise<Map<string, string>> {
  const script = 'for name; do printf "%s\\t%s\\n" "$name" "$(command -v "$name")"; done';
  const shell: Program = { command: "/bin/sh", args: ["-c", script, "sh", ...names] };
  const { stdout } = await run(searchPath === undefined ? shell : { ...shell, env: { PATH: searchPath } });
  const lines = stdout.split("\n").map((line) => line.split("\t"));
  return new Map(lines.flatMap(([name, path]) => (name && path?.startsWith("/") ? [[name, path] as const] : [])));
}

/**
 * The words to put before a server's command so that the kernel sends it `signal` when we die, even by kill -9 (Linux
 * with util-linux); empty elsewhere. The kernel watches the thread that spawns: the caller must be a main thread, not
 * a worker thread.
 */
export async function dieWithUs(signal: "INT" | "TERM"): Promise<string[]> {
  const setpriv = (await findPrograms(["setpriv"])).get("setpriv");
  if (setpriv === undefined) return [];
  const words = [setpriv, "--pdeathsig", signal, "--"];
  const { code } = await run({ command: setpriv, args: [...words.slice(1), "/bin/sh", "-c", ":"] });
  return code === 0 ? words : [];
}

/** One program out of wrapping words, such as those of `dieWithUs`, and a command with its arguments. */
export function programOf(words: readonly string[], rest: Omit<Program, "command" | "args"> = {}): Program {
  const [command, ...args] = words;
  if (command === undefined) throw new Error("a program needs at least its command");
  return { command, args, ...rest };
}

function place({ env, cwd, uid, gid }: Program) {
  return {
    ...(env && { env }),
    ...(cwd && { cwd }),
    ...(uid !== undefined && { uid }),
    ...(gid !== undefined && { gid }),
  };
}
