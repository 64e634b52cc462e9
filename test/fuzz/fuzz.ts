// Feeds parsers of outside text with texts that are nearly valid: npm run fuzz -- [--seconds N] [--seed N] [--target NAME]
// Ends with 1 at the first text that a parser throws on, reads into something that no column holds, or does not return from.
import { parseArgs } from "node:util";
import { feed } from "./feed.ts";
import { TARGETS } from "./targets.ts";

const DEADLINE_MS = 5_000;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "300" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
    target: { type: "string", default: "" },
  },
});
const chosen = TARGETS.filter(({ name }) => name.includes(values.target));
if (chosen.length === 0) throw new Error(`expected a target of ${TARGETS.map(({ name }) => name).join(", ")}`);
const feeding = {
  module: new URL("targets.ts", import.meta.url).href,
  seed: Number(values.seed),
  forMs: (Number(values.seconds) * 1_000) / chosen.length,
  deadlineMs: DEADLINE_MS,
};

for (const target of chosen) {
  const outcome = await feed(target, feeding);
  if ("fault" in outcome) {
    console.error(`${outcome.fault}\nThe text is kept in ${outcome.file}`);
    process.exitCode = 1;
    break;
  }
  console.log(`${target.name}: ${outcome.texts} texts`);
}
