import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { runProgram } from "../../src/cli/program.ts";
import { createDatabase } from "../support/database.ts";
import { roundhouse } from "./world.ts";

const START = join(import.meta.dirname, "../../src/start.js");
let env: Record<string, string>;

beforeAll(async () => {
  const database = await createDatabase();
  env = { DATABASE_URL: database.url };
  return () => database.drop();
});

it("fails when a file cannot be read, though a closed terminal has the same error", async () => {
  // reading the memory of a process from its beginning is an I/O error
  const failed = await roundhouse(["verify", "--checkpoint", "/proc/self/mem"], { env });
  expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("EIO") as string });
});

describe("results that cannot be written", () => {
  const { stdout, stderr } = process;
  const { isTTY } = stdout;
  const writes = { stdout: stdout.write, stderr: stderr.write };

  /** Lists the houses on a stdout that fails; returns the exit code and stderr. */
  async function listHouses({ code, onTerminal }: { code: string; onTerminal: boolean }) {
    let reported = "";
    onTestFinished(() => {
      Object.assign(stdout, { write: writes.stdout, isTTY });
      Object.assign(stderr, { write: writes.stderr });
      delete process.env.DATABASE_URL;
    });
    const fail = (_: string, written: (error: Error) => void) => {
      process.nextTick(written, Object.assign(new Error(`${code}: write`), { code }));
      return false;
    };
    Object.assign(stdout, { isTTY: onTerminal, write: fail });
    Object.assign(stderr, { write: (text: string) => (reported += text) !== "" });
    Object.assign(process.env, env);
    return { code: await runProgram(["house", "list", "--json"]), stderr: reported };
  }

  it.each([
    { code: "EPIPE", onTerminal: false },
    { code: "EIO", onTerminal: true },
  ])("are no failure if the reader is gone: $code", async (how) => {
    expect(await listHouses(how)).toEqual({ code: 0, stderr: "" });
  });

  it.each([
    { code: "EIO", onTerminal: false },
    { code: "ENOSPC", onTerminal: false },
  ])("are a failure if the disk refuses them: $code", async (how) => {
    const { code, stderr: reported } = await listHouses(how);
    expect([code, reported]).toEqual([1, expect.stringContaining(how.code)]);
  });

  it("are a failure of the process if the disk is full", () => {
    const full = openSync("/dev/full", "w");
    const { status, stderr: reported } = spawnSync(process.execPath, [START, "house", "list", "--json"], {
      env: { PATH: process.env.PATH, ...env },
      stdio: ["ignore", full, "pipe"],
      encoding: "utf8",
    });
    closeSync(full);
    expect([status, reported]).toEqual([
      1,
      expect.stringMatching(/^{"error":.*"the results could not be written.*ENOSPC.*\n$/),
    ]);
  });
});
