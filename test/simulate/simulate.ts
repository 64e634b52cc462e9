/**
 * `npm run simulate -- SEED`: a day of many houses, compressed, with faults drawn from the seed.
 *
 * Houses that are slow, silent or lie, processes and servers that are killed, frozen or cut off: the simulator knows what
 * is true and holds whatever is stored and answered against it, throughout and at the end. The first invariant that does
 * not hold ends it with exit code 1, its seed and what happened until then.
 */
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { print, printJson, printTable, say } from "../../src/cli/output.ts";
import { playDay, type Day } from "./day.ts";
import { plant, PLANTED } from "./planted.ts";

const ROOT = join(import.meta.dirname, "../..");
/** More than this from a quarter on to the end is a leak, where it lasts long enough to tell. */
const MOST_GROWTH = 1.3;
const TELLS_GROWTH_MS = 1_800_000;

interface Given {
  minutes: number;
  hours?: number;
  short: boolean;
  houses?: number;
  tables?: number;
  planted?: string;
  json: boolean;
}

const program = new Command("npm run simulate --")
  .description("play a seeded day of houses, faults and callers, and check everything against the truth")
  .argument("[seed]", "what everything is drawn from", wholeNumber, 1)
  .option("--minutes <n>", "how long it goes on", someNumber, 5)
  .option("--hours <n>", "a soak of so many hours, which also fails if memory grows", someNumber)
  .option("--short", "half a minute, to see that it works", false)
  .option("--houses <n>", "how many houses (6; 3 with --short)", wholeNumber)
  .option("--tables <n>", "how many tables each has (3; 2 with --short)", wholeNumber)
  .option(
    "--planted <fault>",
    `run a build with a fault in it, which must be caught: ${Object.keys(PLANTED).join(", ")}`,
  )
  .option("--json", "print one JSON object", false)
  .exitOverride((error) => {
    process.exit(error.exitCode === 0 ? 0 : 2);
  })
  .action(async (seed: number, given: Given) => {
    const { short, hours, minutes, planted } = given;
    const lastsMs = short ? 30_000 : (hours === undefined ? minutes : hours * 60) * 60_000;
    const build = planted === undefined ? { root: ROOT, remove: () => Promise.resolve() } : await plant(ROOT, planted);
    try {
      say(`seed ${seed}, ${Math.round(lastsMs / 1_000)} s${planted === undefined ? "" : `, with ${planted} planted`}`);
      const day = await playDay({
        seed,
        lastsMs,
        houses: given.houses ?? (short ? 3 : 6),
        tablesPerHouse: given.tables ?? (short ? 2 : 3),
        workers: 2,
        apis: short ? 1 : 2,
        faultEveryMs: short ? 8_000 : 20_000,
        root: build.root,
        say,
      });
      const grown =
        lastsMs < TELLS_GROWTH_MS ? undefined : day.memory.find((one) => one.end > one.quarter * MOST_GROWTH);
      if (day.broken === null && grown !== undefined) {
        day.broken = `${grown.name} grew from ${grown.quarter} to ${grown.end} MB`;
      }
      await (given.json ? printJson({ seed, ...day }) : tell(seed, day));
      const isCaught = day.broken !== null;
      if (planted !== undefined) say(isCaught ? `${planted} was caught` : `${planted} was not caught`);
      if (isCaught !== (planted !== undefined)) process.exitCode = 1;
    } finally {
      await build.remove();
    }
  });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
await program.parseAsync();

async function tell(seed: number, day: Day): Promise<void> {
  await printTable(
    ["what", "times", "median s", "worst s"],
    [...Map.groupBy(day.recoveries, ({ kind }) => kind)].map(([kind, ones]) => {
      const seconds = ones.map((one) => one.seconds ?? Number.POSITIVE_INFINITY).toSorted((a, b) => a - b);
      return [kind, ones.length, fixed(seconds[Math.floor(seconds.length / 2)]), fixed(seconds.at(-1))];
    }),
  );
  await printTable(
    ["process", "MB after a quarter", "MB at the end"],
    day.memory.map(({ name, quarter, end }) => [name, quarter, end]),
  );
  const refused = Object.entries(day.refused).map(([code, n]) => `${n} ${code}`);
  await print(
    `\n${day.rounds} rounds, ${day.forecasts} forecasts of the next color, ${day.scores} scores; ${day.calls} calls answered, refused: ${refused.join(", ") || "none"}`,
  );
  if (day.broken === null) return print(`seed ${seed}: every invariant held`);
  await print(`seed ${seed}: ${day.broken}`);
  await print(`what happened is in ${day.folder ?? ""}/history.txt, beside the logs of every process`);
  await print(`again: npm run simulate -- ${seed}`);
}

function fixed(seconds: number | undefined): string {
  return seconds === undefined ? "-" : seconds.toFixed(1);
}

function wholeNumber(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError(`expected a whole number, got ${JSON.stringify(text)}`);
}

function someNumber(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0 && value <= 1_000) return value;
  throw new InvalidArgumentError(`expected a number above 0, got ${JSON.stringify(text)}`);
}
