import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { printJson, say } from "../../src/cli/output.ts";
import { progressBar } from "../../src/cli/progress.ts";
import { simulateDay, simulateRepeatably, type Day } from "./day.ts";
import { FAULTS, type FaultKind } from "./faults.ts";
import { removeAbandonedRuns } from "./run-folder.ts";
import { findLeak } from "./memory.ts";
import { PLANTED } from "./planted.ts";
import { runPlanted } from "./run-planted.ts";
import { printDay, printDays, printPlanted } from "./report.ts";

const ROOT = join(import.meta.dirname, "../..");
const MINUTE_MS = 60_000;
const SHORT_MS = 30_000;
const QUIET_MS = 120_000;
/** Memory growth is checked only on days of at least half an hour. */
const CHECKS_GROWTH_FROM_MS = 30 * MINUTE_MS;

interface Given {
  seeds?: number[];
  minutes: number;
  hours?: number;
  short: boolean;
  houses?: number;
  tables?: number;
  faults?: FaultKind[];
  planted?: string;
  json: boolean;
}

const program = new Command("npm run simulate --")
  .description("simulate a seeded day of houses, faults and callers, and check everything against the truth")
  .argument("[seed]", "the seed of all random choices", wholeNumber, 1)
  .option("--seeds <list>", "several days one after another, such as 1-10 or 3,5,8-9", seedList)
  .option("--minutes <n>", "the length of a day", positiveNumber, 3)
  .option("--hours <n>", "a soak of this length, which also fails if memory grows", positiveNumber)
  .option("--short", "a day of half a minute, as a quick check", false)
  .option("--houses <n>", "number of houses (default 6; 3 with --short)", wholeNumber)
  .option("--tables <n>", "tables per house (default 3; 2 with --short)", wholeNumber)
  .option("--faults <list>", `only these faults, separated by commas: ${FAULTS.join(", ")}`, faultList)
  .option(
    "--planted <fault>",
    `run a build with a planted fault, which must be detected; \`all\` runs all of them, with --short only the quick ones: ${Object.keys(PLANTED).join(", ")}`,
  )
  .option("--json", "print one JSON object", false)
  .exitOverride((error) => {
    process.exit(error.exitCode === 0 ? 0 : 2);
  })
  .action(async (seed: number, given: Given) => {
    await removeAbandonedRuns(say);
    if (given.planted === undefined) await runSeeds(given.seeds ?? [seed], given);
    else await runAllPlanted(given.planted, given);
  });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
await program.parseAsync();

async function runSeeds(seeds: readonly number[], given: Given): Promise<void> {
  const { hours, minutes, short, json } = given;
  const lastsMs = short ? SHORT_MS : (hours === undefined ? minutes : hours * 60) * MINUTE_MS;
  const simulate = hours === undefined ? simulateRepeatably : simulateDay;
  const days: { seed: number; day: Day }[] = [];
  for (const seed of seeds) {
    say(`seed ${seed}, ${Math.round(lastsMs / 1_000)} s`);
    const day = await withBar(lastsMs, (log) => simulate({ ...sizes(given, seed), lastsMs, say: log }));
    const leak = lastsMs < CHECKS_GROWTH_FROM_MS ? undefined : findLeak(day.memory);
    if (day.failure === null && leak !== undefined) {
      day.failure = `${leak.name} grew from ${leak.beforeMb} to ${leak.afterMb} MB`;
    }
    days.push({ seed, day });
    if (!json) await printDay(seed, day);
    if (day.failure !== null) process.exitCode = 1;
  }
  if (json) await printJson(days.length === 1 ? { seed: days[0]?.seed, ...days[0]?.day } : { days });
  else if (days.length > 1) await printDays(days);
}

async function runAllPlanted(name: string, { json, short }: Given): Promise<void> {
  const all = Object.keys(PLANTED).filter((one) => !short || PLANTED[one]?.isQuick === true);
  const names = name === "all" ? all : name.split(",");
  const results = await runPlanted(ROOT, names, say);
  await (json ? printJson({ planted: results }) : printPlanted(results));
  if (results.some(({ isDetected }) => !isDetected)) process.exitCode = 1;
}

function sizes({ short, hours, houses, tables, faults }: Given, seed: number) {
  return {
    ...(faults !== undefined && { faults }),
    seed,
    root: ROOT,
    quietMs: QUIET_MS,
    houses: houses ?? (short ? 3 : 6),
    tablesPerHouse: tables ?? (short ? 2 : 3),
    workers: 2,
    apis: short ? 1 : 2,
    faultEveryMs: short ? 8_000 : 20_000,
    isSoak: hours !== undefined,
  };
}

/** Shows a progress bar at a terminal; log lines appear above it. */
async function withBar<Result>(
  lastsMs: number,
  work: (log: (line: string) => void) => Promise<Result>,
): Promise<Result> {
  const bar = progressBar();
  const startMs = performance.now();
  const timer = setInterval(() => {
    const passedMs = Math.min(performance.now() - startMs, lastsMs);
    bar.show("simulated day", Math.round(passedMs / 1_000), Math.round(lastsMs / 1_000));
  }, 500);
  try {
    return await work((line) => {
      bar.end();
      say(line);
    });
  } finally {
    clearInterval(timer);
    bar.end();
  }
}

function wholeNumber(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError(`expected a whole number, got ${JSON.stringify(text)}`);
}

function seedList(text: string): number[] {
  return text.split(",").flatMap((part) => {
    const [from = "", to = from, ...more] = part.split("-");
    const [first, last] = [wholeNumber(from), wholeNumber(to)];
    if (more.length > 0 || last < first || last - first >= 1_000) {
      throw new InvalidArgumentError(`expected seeds such as 1-10 or 3,5,8-9, got ${JSON.stringify(text)}`);
    }
    return Array.from({ length: last - first + 1 }, (_, n) => first + n);
  });
}

function faultList(text: string): FaultKind[] {
  return text.split(",").map((name) => {
    const kind = FAULTS.find((one) => one === name.trim());
    if (kind !== undefined) return kind;
    throw new InvalidArgumentError(`expected one of ${FAULTS.join(", ")}, got ${JSON.stringify(name)}`);
  });
}

function positiveNumber(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0 && value <= 1_000) return value;
  throw new InvalidArgumentError(`expected a number above 0 and at most 1000, got ${JSON.stringify(text)}`);
}
