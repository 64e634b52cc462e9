// Feeds parsers of outside text with texts that are nearly valid, and keeps the first text that one fails on.
import { Command, Option } from "commander";
import { wholeNumber } from "../../src/cli/arguments.ts";
import { feed } from "./feed.ts";
import { TARGETS } from "./targets.ts";

const DEADLINE_MS = 5_000;

const { seconds, seed, target } = new Command("npm run fuzz --")
  .description(
    "feed parsers of outside text with texts that are nearly valid; ends with 1 at the first text that a parser throws on, " +
      "reads into something that no column holds, or does not return from",
  )
  .option("--seconds <n>", "how long, all targets together", wholeNumber(1), 300)
  .option("--seed <n>", "the first seed, to repeat a run", wholeNumber(0), Date.now() % 1_000_000_000)
  .addOption(new Option("--target <name>", "only this target").choices([...new Set(TARGETS.map(({ name }) => name))]))
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts<{ seconds: number; seed: number; target?: string }>();
const chosen = TARGETS.filter(({ name }) => target === undefined || name === target);
const feeding = {
  module: new URL("targets.ts", import.meta.url).href,
  seed,
  forMs: (seconds * 1_000) / chosen.length,
  deadlineMs: DEADLINE_MS,
};

for (const one of chosen) {
  const outcome = await feed(one, feeding);
  if ("fault" in outcome) {
    console.error(`${outcome.fault}\nThe text is kept in ${outcome.file}`);
    process.exitCode = 1;
    break;
  }
  console.log(`${one.name}: ${outcome.texts} texts`);
}
