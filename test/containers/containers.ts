/** `npm run containers`: docker-compose.yml and Dockerfile with a real engine, as an operator uses them. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { reasonOf } from "../../src/errors.ts";
import { type Engine, findEngine } from "./engine.ts";
import { openStack } from "./stack.ts";
import { STEPS } from "./steps.ts";
import type { World } from "./world.ts";

const options = new Command("npm run containers --")
  .description(
    "run docker-compose.yml and Dockerfile with a real engine; if no engine responds and this cannot start one (root on " +
      "Debian 12), print why not",
  )
  .option("--all", "end with 1 if there is no engine", false)
  .option("--short", "leave out scaling, the upgrade, HTTPS and the restore", false)
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts<{ all: boolean; short: boolean }>();
const scratch = await mkdtemp(join(tmpdir(), "roundhouse-containers-"));
const made = join(tmpdir(), "roundhouse-engine");
await mkdir(made, { recursive: true });
const found = await findEngine(made);
try {
  if (typeof found === "string") {
    console.log(`containers: not run, since ${found}`);
    process.exitCode = options.all ? 1 : 0;
  } else {
    console.log(found.version);
    await showAll(found);
  }
} finally {
  if (typeof found !== "string") await found.stop();
  await rm(scratch, { recursive: true, force: true, maxRetries: 5 });
}

async function showAll(engine: Engine): Promise<void> {
  const stack = await openStack(join(scratch, "roundhouse"), engine);
  const admin = { email: "admin@example.com", password: "" };
  const world: World = { stack, image: "", key: "", admin, answered: 0, made: 0 };
  const beganMs = performance.now();
  try {
    const steps = STEPS.filter(({ isLong }) => !options.short || isLong !== true);
    for (const { claim, show } of steps) {
      const fromMs = performance.now();
      const seen = await show(world);
      console.log(`${seconds(fromMs).padStart(5)} s  ${claim}: ${seen}`);
    }
    console.log(`containers: ${steps.length} claims shown in ${seconds(beganMs)} s`);
  } catch (error) {
    process.exitCode = 1;
    console.error(`containers: ${reasonOf(error)}`);
    if (error instanceof Error) console.error(error.stack);
    const log = await stack.compose("logs", "--no-color", "--tail", "30").catch(reasonOf);
    console.error(log.slice(-20_000));
  } finally {
    await stack.compose("--profile", "*", "down", "--volumes", "--remove-orphans", "--timeout", "5");
  }
}

function seconds(fromMs: number): string {
  return ((performance.now() - fromMs) / 1_000).toFixed(1);
}
