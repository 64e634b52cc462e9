import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFailed, onTestFinished } from "vitest";
import { freePort } from "../../src/embedded/ports.ts";
import { eventually } from "../support/eventually.ts";
import { findProgram } from "./programs.ts";

const CONFIG = join(import.meta.dirname, "../../deploy/haproxy.cfg");

/** Starts HAProxy with the file that docker-compose.yml gives it; `env` is what that file leaves open. Ends with the test. */
export async function startProxy(env: Record<string, string>): Promise<{ url: string; log(): string }> {
  const folder = await mkdtemp(join(tmpdir(), "roundhouse-proxy-"));
  const program = await findProgram("haproxy", folder);
  const port = await freePort();
  const child = spawn(program.command, ["-db", "-f", CONFIG], {
    env: { ...program.env, ...env, LISTEN: `127.0.0.1:${port}` },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let written = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (written += text));
  onTestFailed(() => console.log(written));
  onTestFinished(async () => {
    const ended = once(child, "exit");
    if (child.kill("SIGKILL")) await ended;
    await rm(folder, { recursive: true, force: true });
  });
  const url = `http://127.0.0.1:${port}`;
  await eventually(async () => {
    if (child.exitCode !== null) throw new Error(`HAProxy ended: ${written}`);
    return (await fetch(url)).status > 0;
  });
  return { url, log: () => written };
}
