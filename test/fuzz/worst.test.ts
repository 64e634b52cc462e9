import { afterAll, describe, expect, it } from "vitest";
import { createThread } from "../../src/thread.ts";
import { PIECES } from "./mutate.ts";
import { TARGETS } from "./targets.ts";
import type { WorstTask } from "./worst-thread.ts";

/**
 * More than most parsers get, so that one in quadratic time takes 1.7 * 10^10 steps, which is longer than the deadline;
 * one in linear time takes a hundredth of it.
 */
const CHARACTERS = 128 << 10;

const thread = createThread<WorstTask, void>(new URL("worst-thread.ts", import.meta.url), {
  deadlineMs: 15_000,
  idleMs: 10_000,
  maxTasks: 1,
  heapMb: 1_024,
});
afterAll(() => thread.close());

/** Texts that make a parser begin the same thing again and again, and never end it. */
const FILLERS = [
  PIECES,
  [
    "a",
    " ",
    "a ",
    "1,",
    '"a",',
    '""',
    '"\n',
    "a\n",
    ";;",
    "\\\\",
    "%",
    "%41",
    "::",
    "a=1&",
    "/a",
    ", ",
    'W/"a", ',
    "*, ",
  ],
  [
    "<a>",
    "<a b='",
    "</a>",
    "<a/>",
    "&amp;",
    "<!DOCTYPE a [",
    "<!a",
    "<!--",
    "<Ntry>",
    "<Ntry><Amt>1</Amt></Ntry>",
    "<TxDtls>",
  ],
  ['{"a":[', '{"a":1},', "[1],", "1.10,", '{"round_id":1,"multiplier":1.10}\n', "1,1.5\n", '"0x', "\\u0061"],
]
  .flat()
  .filter((piece) => piece !== "");

/** Where a filler is put: alone, and late within a valid text. */
function* worstTexts(seed: string): Generator<string> {
  for (const filler of FILLERS) {
    const long = filler.repeat(Math.floor(CHARACTERS / filler.length));
    yield long;
    const at = Math.floor(seed.length * 0.75);
    yield seed.slice(0, at) + long + seed.slice(at);
  }
}

describe("[PARSERS] the worst text of its size", () => {
  it.each(TARGETS)(
    "is read or refused by $name in time that grows with its length",
    { timeout: 600_000 },
    async ({ name, seeds }) => {
      for (const text of worstTexts(seeds[0]!)) {
        const outcome = await thread.run({ name, text }).then(
          () => null,
          (error: unknown) => `${text.slice(0, 60)} … ${text.slice(-60)}: ${String(error)}`,
        );
        expect(outcome).toBeNull();
      }
    },
  );
});
