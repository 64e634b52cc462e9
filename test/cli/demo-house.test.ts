import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import path from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { makeDemoHouse, makeFolder, readBustabit } from "../demo/world.ts";

const COMMAND = path.join(import.meta.dirname, "../../src/cli/run/demo-house.ts");

/** The command alone in a process of its own, as `roundhouse demo-house …` runs it. */
async function run(...given: string[]) {
  const dataDir = await makeFolder();
  const script = `
    import { demoHouseCommand } from ${JSON.stringify(COMMAND)};
    await demoHouseCommand(() => ({ dataDir: ${JSON.stringify(dataDir)}, host: "127.0.0.1" })).parseAsync(${JSON.stringify(given)}, { from: "user" });`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  const ended = once(child, "close").then(([code]: unknown[]) => ({ code, errors }));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return { child, ended, firstLine: async () => (await lines.next()).value ?? "" };
}

it.each(["SIGINT", "SIGTERM"] as const)("prints where it serves, and ends well on %s", async (signal) => {
  const { child, ended, firstLine } = await run("--port", "0");
  const url = await firstLine();
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  const answer = await readBustabit(await fetch(`${url}/bustabit/rounds`));
  expect(answer.rounds[0]?.id).toBeGreaterThanOrEqual(200);
  child.kill(signal);
  expect(await ended).toEqual({ code: 0, errors: "" });
});

it("plays at the given speed with the given seed, and prints its URL as JSON", async () => {
  const { firstLine } = await run("--port", "0", "--speed", "20", "--seed", "42", "--json");
  const ready = z.strictObject({ event: z.literal("ready"), url: z.url() });
  const { url } = ready.parse(JSON.parse(await firstLine()));
  const front = await (await fetch(url)).text();
  expect(front).toContain("seed 42");
  expect(front).toContain("0.05 s");
});

const FIXTURE = path.join(import.meta.dirname, "../fixtures/replay/blaze.csv");

it("serves recorded rounds in a house's own format, and reports what the file lacks", async () => {
  const { child, ended, firstLine } = await run("--port", "0", "--replay", FIXTURE, "--as", "blaze", "--speed", "1000");
  const url = await firstLine();
  const rounds = z.array(z.object({ id: z.string(), status: z.string() }));
  expect(rounds.parse(await (await fetch(`${url}/api/crash_games/recent`)).json())[0]).toMatchObject({
    status: "complete",
  });
  child.kill("SIGTERM");
  expect(await ended).toEqual({ code: 0, errors: "" });
});

it.each([
  [["--as", "blaze"], "expected --replay with a file together with --as, --from and --number-rows"],
  [["--replay", FIXTURE, "--as", "rollbit"], "Allowed choices are json, bustabit"],
  [["--replay", FIXTURE, "--seed", "7"], "cannot be used with option '--seed <number>'"],
  [["--replay", FIXTURE, "--from", "nobody"], 'got "nobody"'],
  [["--replay", `${FIXTURE}.gz`], "blaze.csv.gz cannot be replayed"],
])("refuses %j, saying what is expected", async (given, expected) => {
  const { ended } = await run("--port", "0", ...given);
  const { code, errors } = await ended;
  expect(code).not.toBe(0);
  expect(errors).toContain(expected);
});

it.each([
  ["--port", "http", "whole number from 0 to 65535"],
  ["--port", "70000", "whole number from 0 to 65535"],
  ["--speed", "0", "factor from 0.01 to 1000"],
  ["--speed", "fast", "factor from 0.01 to 1000"],
  ["--seed", "-1", "whole number"],
])("refuses %s %s, saying what is expected", async (option, value, expected) => {
  const { ended } = await run(option, value);
  const { code, errors } = await ended;
  expect(code).not.toBe(0);
  expect(errors).toContain(expected);
});

it("advises what to do if its port is in use", async () => {
  const { port } = await makeDemoHouse();
  const { ended } = await run("--port", String(port));
  const { code, errors } = await ended;
  expect(code).not.toBe(0);
  expect(errors).toContain("the port is taken; stop what listens there, or choose another port");
});
