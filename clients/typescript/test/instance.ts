import { type ChildProcess, spawn } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";

/** A running Roundhouse. */
export interface Instance {
  url: string;
  key: string;
  stop(): Promise<void>;
}

const ROOT = path.join(import.meta.dirname, "../../..");
const STARTED_WITHIN_MS = 120_000;

/** What `npm start` of this checkout runs, on free ports and a folder of its own. @throws Error if it is not ready in 2 minutes */
export async function startInstance(): Promise<Instance> {
  const folder = await mkdtemp(path.join(tmpdir(), "roundhouse-client-"));
  await chmod(folder, 0o755); // started by root, the private PostgreSQL runs as another user
  const node = path.join(ROOT, "node_modules/.bin/node");
  const env = { ...process.env, DATA_DIR: folder, HOST: "127.0.0.1", PORT: "0", WORKER_PORT: "0" };
  const child = spawn(node, [path.join(ROOT, "src/start.js"), "up", "--json"], {
    cwd: ROOT,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const stop = async () => {
    await exitOf(child);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const { url, api_key: key } = await readyLine(child);
    return { url, key, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function readyLine(
  child: ChildProcess & { stdout: NodeJS.ReadableStream },
): Promise<{ url: string; api_key: string }> {
  const signal = AbortSignal.timeout(STARTED_WITHIN_MS);
  for await (const line of createInterface({ input: child.stdout, signal })) {
    const message = JSON.parse(line) as { event: string; url: string; api_key: string };
    if (message.event === "ready") return message;
  }
  throw new Error(
    `expected a line that it is ready within ${STARTED_WITHIN_MS / 1_000} s, its output ended without one`,
  );
}

/** Ends a process with SIGTERM and waits until it is gone. */
export function exitOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.kill("SIGTERM");
  });
}

/** Repeats a check every 100 ms until it does not throw; after 30 s its last error is thrown. */
export async function eventually<T>(check: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
