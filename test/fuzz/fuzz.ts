// Feeds parsers of outside text with texts that are nearly valid: npm run fuzz -- [--seconds N] [--seed N] [--target NAME]
// Ends with 1 at the first text that a parser throws on, reads into something that no column holds, or takes too long for.
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { mutate, randomOf } from "./mutate.ts";
import { type Target, TARGETS } from "./targets.ts";

/** For 64 kB: a parser in linear time takes some milliseconds. */
const SLOWEST_MS = 2_000;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "300" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
    target: { type: "string", default: "" },
  },
});
const chosen = TARGETS.filter(({ name }) => name.includes(values.target));
if (chosen.length === 0) throw new Error(`expected a target of ${TARGETS.map(({ name }) => name).join(", ")}`);
const eachMs = (Number(values.seconds) * 1_000) / chosen.length;

/** Feeds a parser for a while; gives the fault that was found, or how many texts were read. */
function feed({ name, seeds, run }: Target): { fault: string } | { texts: number } {
  const until = performance.now() + eachMs;
  let texts = 0;
  for (; performance.now() < until || texts === 0; texts += 1) {
    const seed = Number(values.seed) + texts;
    const text = mutate(seeds, randomOf(seed));
    const startedAt = performance.now();
    let fault: string | null = null;
    try {
      run(text);
      const ms = performance.now() - startedAt;
      if (ms > SLOWEST_MS) fault = `${text.length} characters took ${Math.round(ms)} ms`;
    } catch (error) {
      fault = error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
    if (fault === null) continue;
    const file = path.join(tmpdir(), `fuzz-${name.replaceAll(/\W+/g, "-")}-${seed}.txt`);
    writeFileSync(file, text);
    return { fault: `${name}, seed ${seed}, kept in ${file}: ${fault}` };
  }
  return { texts };
}

for (const target of chosen) {
  const found = feed(target);
  if ("fault" in found) {
    console.error(found.fault);
    process.exitCode = 1;
    break;
  }
  console.log(`${target.name}: ${found.texts} texts`);
}
