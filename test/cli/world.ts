import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { chmod, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { runProgram } from "../../src/cli/program.ts";
import { eventually } from "../support/eventually.ts";
import { makeQuickFolder } from "../support/quick-folder.ts";

const START = join(import.meta.dirname, "../../src/start.js");

/** How a command is started: its environment holds nothing but what is given here and what every process needs. */
export interface Place {
  cwd?: string;
  env?: Record<string, string>;
}

/** What a command that ended left. */
export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A folder of one's own, gone after the test. */
export async function makeFolder(): Promise<string> {
  const folder = await makeQuickFolder("roundhouse-cli-");
  await chmod(folder, 0o711); // PostgreSQL may run as another user
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** A file in a folder of its own; gives its path. */
export async function makeFile(name: string, content: string | Buffer): Promise<string> {
  const file = join(await makeFolder(), name);
  await writeFile(file, content);
  return file;
}

/**
 * Runs the program to its end in this process, which needs no start of Node. One at a time, since environment, output
 * and exit code are those of the process. Commands that run until a signal, or end the process themselves, need
 * `startRoundhouse`.
 */
export function roundhouse(args: string[], place: { env?: Record<string, string> } = {}): Promise<Ended> {
  const ended = previous.then(() => runHere(args, place.env ?? {}));
  previous = ended.catch(() => undefined);
  return ended;
}

let previous: Promise<unknown> = Promise.resolve();

async function runHere(args: string[], given: Record<string, string>): Promise<Ended> {
  const { env, exitCode } = process;
  const { PATH = "", HOME = "" } = env;
  const stdout = captureWrites(process.stdout);
  const stderr = captureWrites(process.stderr);
  process.env = { PATH, HOME, ...given };
  process.exitCode = undefined;
  try {
    const code = await runProgram(args);
    return { code, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    Object.assign(process, { env, exitCode });
    stdout.end();
    stderr.end();
  }
}

/** Keeps what is written to a stream until `end`. */
function captureWrites(stream: NodeJS.WriteStream): { text(): string; end(): void } {
  const { write } = stream;
  const chunks: string[] = [];
  stream.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    chunks.push(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8"));
    const written = rest.find((one) => typeof one === "function");
    if (written) process.nextTick(written);
    return true;
  };
  return { text: () => chunks.join(""), end: () => void (stream.write = write) };
}

/** A process of its own: its output so far, its end, and signals to it. Killed after the test if it still runs. */
export function startRoundhouse(args: string[], place: Place = {}) {
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(process.execPath, [START, ...args], {
    cwd: place.cwd ?? join(import.meta.dirname, "../.."),
    env: { PATH, HOME, ...place.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output.stderr += text));
  const ended = once(child, "close").then(([code]: unknown[]): Ended => ({ code: code as number | null, ...output }));
  return { pid: child.pid ?? 0, output, ended, child, kill: (signal: NodeJS.Signals) => child.kill(signal) };
}

/** A houses file; JSON is YAML too. */
export function housesFile(houses: object[]): Promise<string> {
  return makeFile("houses.yaml", JSON.stringify({ houses }));
}

/** What `up --json`, `api --json` and `worker --json` print when they are ready. */
export interface Ready {
  event: string;
  url: string;
  api_key: string;
  ops_url: string;
}

/** Waits until a command that goes on prints its one line; throws with what it said where it ended instead. */
export async function untilReady(started: ReturnType<typeof startRoundhouse>): Promise<Ready> {
  const ready = eventually(() => started.output.stdout.includes("\n") || undefined, { timeoutMs: 60_000 });
  const how = await Promise.race([ready, started.ended]);
  if (how !== true) throw new Error(`ended with ${how.code} before it was ready:\n${how.stderr}`);
  return JSON.parse(started.output.stdout.split("\n")[0] ?? "") as Ready;
}

/** Processes that show a folder in their command line, environment or working directory: what a start left behind. */
export function processesOf(folder: string): string[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return pids.flatMap((pid) => {
    // synchronous: the files are in memory, and a test that waits reads hundreds of them every 25 ms
    const command = orEmpty(() => readFileSync(`/proc/${pid}/cmdline`, "utf8"));
    const shows = [
      () => command,
      () => readFileSync(`/proc/${pid}/environ`, "utf8"),
      () => readlinkSync(`/proc/${pid}/cwd`),
    ].some((read) => orEmpty(read).includes(folder));
    return shows ? [`${pid} ${command.replaceAll("\0", " ")}`] : [];
  });
}

/** The text of a file of a process, empty if the process has ended. */
function orEmpty(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}

/** Asks the API of a started instance. */
export async function ask(
  ready: Pick<Ready, "url" | "api_key">,
  path: string,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${ready.url}${path}`, { headers: { "X-Api-Key": ready.api_key } });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** As {@link ask}, until the response is not 503: a busy machine may refuse the first requests of a process. */
export function askUntilServed(...args: Parameters<typeof ask>): ReturnType<typeof ask> {
  return eventually(async () => {
    const response = await ask(...args);
    return response.status !== 503 && response;
  });
}
