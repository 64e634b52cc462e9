import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { codeOf } from "../../src/errors.ts";
import { createDatabase, createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { makeFolder, processesOf } from "./world.ts";

const ROOT = join(import.meta.dirname, "../..");

/** A launcher that runs `up`, its output so far, and what its instance leaves in DATA_DIR. */
interface Launched {
  launcher: ChildProcess;
  folder: string;
  output: { stdout: string; stderr: string };
}

/** Runs a command that leads to `up --json` until that is ready. A process group of its own, as a terminal gives it. */
async function launch(command: string[], variables: Record<string, string> = {}): Promise<Launched> {
  const folder = await makeFolder();
  const { PATH = "", HOME = "" } = process.env;
  const [program = "", ...args] = command;
  const launcher = spawn(program, args, {
    cwd: ROOT,
    env: { PATH, HOME, DATA_DIR: join(folder, "data"), PORT: "0", ...variables },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  onTestFinished(() => {
    for (const line of processesOf(folder)) process.kill(Number.parseInt(line, 10), "SIGKILL");
  });
  const output = { stdout: "", stderr: "" };
  launcher.stdout.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
  launcher.stderr.setEncoding("utf8").on("data", (text: string) => (output.stderr += text));
  await eventually(
    () => {
      if (launcher.exitCode !== null) throw new Error(`ended before it was ready:\n${output.stderr}`);
      return output.stdout.includes('"event":"ready"');
    },
    { timeoutMs: 60_000 },
  );
  return { launcher, folder, output };
}

async function givenServers(): Promise<Record<string, string>> {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  return { DATABASE_URL: database.url, REDIS_URL: (await createRedis()).url };
}

async function runFileOf({ folder }: Launched): Promise<{ pid: number; url: string }> {
  return JSON.parse(await readFile(join(folder, "data", "run.json"), "utf8")) as { pid: number; url: string };
}

const NPM_START = ["npm", "start", "--silent", "--", "--json"];

describe("npm start", () => {
  it.each(["SIGTERM", "SIGKILL"] as const)(
    "stops in order, with its private servers, when npm gets %s",
    async (signal) => {
      const launched = await launch(NPM_START);
      launched.launcher.kill(signal);
      await eventually(() => processesOf(launched.folder).length === 0, { timeoutMs: 30_000 });
      expect(launched.output.stderr).not.toContain("cut short");
      await expect(stat(join(launched.folder, "data", "run.json"))).rejects.toThrow("ENOENT");
    },
  );

  it("leaves no server behind when both npm and the instance get SIGKILL", async () => {
    const launched = await launch(NPM_START);
    const { pid } = await runFileOf(launched);
    launched.launcher.kill("SIGKILL");
    process.kill(pid, "SIGKILL");
    await eventually(() => expect(processesOf(launched.folder)).toEqual([]), { timeoutMs: 30_000 });
  });

  it("stops in order on Ctrl-C, also when it arrives twice, from the terminal and from npm", async () => {
    const launched = await launch(NPM_START, await givenServers());
    const { launcher, output, folder } = launched;
    const ended = once(launcher, "close");
    const group = -(launcher.pid ?? 0);
    process.kill(group, "SIGINT");
    await eventually(() => output.stderr.includes("stopping, Ctrl-C again cuts it short"));
    try {
      process.kill(group, "SIGINT");
    } catch (error) {
      expect(codeOf(error)).toBe("ESRCH"); // all of the group have ended
    }
    // the second one ends npm itself where the instance has just ended
    expect([
      [0, null],
      [null, "SIGINT"],
    ]).toContainEqual(await ended);
    expect(output.stderr).not.toContain("cut short");
    await expect(stat(join(folder, "data", "run.json"))).rejects.toThrow("ENOENT");
  });

  it("keeps running in its own session after its launcher ended", async () => {
    // setsid forks here, since the shell's child leads no group: what it starts is detached on purpose
    const script = 'setsid "$0" src/start.js up --json & wait';
    const variables = { ...(await givenServers()), npm_lifecycle_event: "start" };
    const launched = await launch(["sh", "-c", script, process.execPath], variables);
    const { pid, url } = await runFileOf(launched);
    launched.launcher.kill("SIGKILL");
    const parent = async () => /^PPid:\t(\d+)$/m.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1];
    await eventually(async () => (await parent()) !== `${launched.launcher.pid}`);
    // an instance that is not detached looks for its parent twice a second
    for (let check = 0; check < 30; check += 1) {
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      await delay(100);
    }
    process.kill(pid, "SIGTERM");
    await eventually(() => processesOf(launched.folder).length === 0, { timeoutMs: 30_000 });
  });
});
