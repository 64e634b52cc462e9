/**
 * `npm run production`: what a deployment gets. Installs a copy of the tracked files without development packages,
 * checks which packages are there, starts it on private servers, calls the API, draws a plot, runs `verify`, stops it.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, cp, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { z } from "zod";
import { run } from "../../src/embedded/process.ts";
import { eventually } from "../support/eventually.ts";

const ROOT = join(import.meta.dirname, "../..");
/** Each brings a test runner, a compiler or a bundler, through peers that are optional. */
const UNWANTED = ["vitest", "typescript", "vite", "rolldown", "lightningcss"];
const INSTALLED_WITHIN_MS = 600_000;
const READY_WITHIN_MS = 120_000;
const DRAWN_WITHIN_MS = 120_000;

const ready = z.object({ event: z.literal("ready"), url: z.url(), api_key: z.string() });
const games = z.object({ games: z.array(z.object({ house: z.string(), buffered_rounds: z.number() })) });

const scratch = await mkdtemp(join(tmpdir(), "roundhouse-production-"));
await chmod(scratch, 0o711); // PostgreSQL may run as another user
const app = join(scratch, "app");
const variables = { ...process.env, DATA_DIR: join(scratch, "data"), PORT: "0", NODE_ENV: "production" };
try {
  const files = await copyTrackedFiles();
  await inApp("npm", ["ci", "--omit=dev"], INSTALLED_WITHIN_MS);
  await checkPackages(files);
  await checkRunning();
  console.log("a production install starts, serves, draws and verifies");
} finally {
  await rm(scratch, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
}

/** Copies what git knows, as it is in the working tree; returns the paths. */
async function copyTrackedFiles(): Promise<string[]> {
  const { code, stdout, stderr } = await run({ command: "git", args: ["ls-files", "-z"], cwd: ROOT });
  if (code !== 0) throw new Error(`expected a list of files from git ls-files, got: ${stderr}`);
  const files = stdout.split("\0").filter((file) => file !== "" && !file.startsWith("test/"));
  for (const file of files) {
    await mkdir(dirname(join(app, file)), { recursive: true });
    await cp(join(ROOT, file), join(app, file));
  }
  return files;
}

/** No unwanted package, no missing peer, and every package that src and jobs name can be found. */
async function checkPackages(files: string[]): Promise<void> {
  const lock = z.object({ packages: z.record(z.string(), z.unknown()) });
  const installed = lock.parse(JSON.parse(await readFile(join(app, "node_modules/.package-lock.json"), "utf8")));
  const names = Object.keys(installed.packages).map((path) => path.replace(/^.*node_modules\//, ""));
  const unwanted = names.filter((name) => UNWANTED.includes(name));
  if (unwanted.length > 0) {
    throw new Error(`expected no ${unwanted.join(", ")}: \`npm explain\` shows which package asks for it as a peer`);
  }
  // .npmrc keeps npm from linking peers; this compares what packages need of each other with what is there
  await inApp("npm", ["ls", "--all", "--omit=dev", "--legacy-peer-deps=false"], 60_000);

  const sources = files.filter((file) => /^(?:src|jobs)\/.*\.[jt]s$/.test(file));
  const wanted = new Set<string>();
  for (const file of sources) {
    const text = await readFile(join(app, file), "utf8");
    const named = text.matchAll(
      /^(?:import|export|\})[^"'`;]*?from "([^".][^"]*)"|\bimport\("([^".][^"]*)"\)|^import "([^".][^"]*)"/gm,
    );
    for (const [, from, loaded, bare] of named) wanted.add(from ?? loaded ?? bare ?? "");
  }
  const packages = [...wanted].filter((name) => !name.startsWith("node:"));
  if (packages.length === 0) throw new Error("expected src to import packages, found no import");
  const resolve = `for (const name of ${JSON.stringify(packages)}) import.meta.resolve(name);`;
  await inApp("node", ["--input-type=module", "--eval", resolve], 30_000);
  const { stdout } = await run({ command: "du", args: ["-sm", "node_modules"], cwd: app });
  console.log(
    `${names.length} packages of ${Number.parseInt(stdout, 10)} MB; ${packages.length} names that src imports`,
  );
}

async function checkRunning(): Promise<void> {
  const npm = spawn("npm", ["start", "--silent", "--", "--json"], {
    cwd: app,
    env: variables,
    stdio: ["ignore", "pipe", "inherit"],
    detached: true, // a group of its own, to be killed with what it starts
  });
  try {
    await useInstance(npm);
  } finally {
    // the private servers end with the instance
    if (npm.exitCode === null && npm.pid !== undefined) process.kill(-npm.pid, "SIGKILL");
  }
}

/** Waits for `npm start`, uses it as a caller, a visitor and an operator do, and stops it. */
async function useInstance(npm: ChildProcessByStdio<null, Readable, null>): Promise<void> {
  const ended = once(npm, "close");
  let stdout = "";
  npm.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  await eventually(() => stdout.includes("\n") || npm.exitCode !== null, { timeoutMs: READY_WITHIN_MS });
  const { url, api_key: key } = ready.parse(JSON.parse(stdout));

  const ask = async (path: string) => {
    const response = await fetch(url + path, { headers: { "X-Api-Key": key }, signal: AbortSignal.timeout(30_000) });
    if (!response.ok) throw new Error(`expected ${path} to be served, got ${response.status}`);
    return response.text();
  };
  await eventually(
    async () => {
      const { games: all } = games.parse(JSON.parse(await ask("/api/v1/games")));
      return all.some(({ buffered_rounds }) => buffered_rounds > 0);
    },
    { timeoutMs: DRAWN_WITHIN_MS },
  );
  // the first forecasts are scored within seconds; then there is something to draw
  await eventually(async () => /<figure[^>]*>(?:(?!<\/figure>).)*<svg/s.test(await ask("/accuracy?of=bustabit")), {
    timeoutMs: DRAWN_WITHIN_MS,
  });
  await inApp("node", ["src/start.js", "verify"], 120_000);
  npm.kill("SIGTERM");
  const [code] = (await ended) as [number | null];
  if (code !== 0) throw new Error(`expected npm start to end with 0 after SIGTERM, got ${code}`);
}

/** Runs a command in the installed copy. @throws Error with what it printed if it does not exit with 0. */
async function inApp(command: string, args: string[], timeoutMs: number): Promise<void> {
  const env = Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
  const { code, stdout, stderr } = await run({ command, args, cwd: app, env }, { timeoutMs });
  if (code !== 0)
    throw new Error(
      `${command} ${args.join(" ").slice(0, 200)} failed:\n${stdout.slice(-2000)}\n${stderr.slice(-2000)}`,
    );
}
