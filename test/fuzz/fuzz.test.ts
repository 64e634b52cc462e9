import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { TARGETS as BAD_TARGETS } from "./bad-targets.ts";
import { feed } from "./feed.ts";
import { mutate, randomOf } from "./mutate.ts";
import { TARGETS } from "./targets.ts";

describe("[FUZZ] every parser of outside text", () => {
  it.each(TARGETS)(
    "$name reads what it is made for, and survives fifty texts that are nearly that",
    async ({ seeds, run }) => {
      const changed = Array.from({ length: 50 }, (_, n) => mutate(seeds, randomOf(n + 1)));
      for (const text of [...seeds, ...changed]) expect(await run(text)).toBeUndefined();
    },
  );

  it("gets the same texts from the same seed", () => {
    const texts = ["abc", "[1,2,3]"];
    const some = (seed: number) => Array.from({ length: 5 }, (_, at) => mutate(texts, randomOf(seed + at)));
    expect(some(7)).toEqual(some(7));
    expect(some(7)).not.toEqual(some(8));
  });
});

describe("[FUZZ] the watchdog", () => {
  const feeding = { seed: 7, forMs: 60_000, deadlineMs: 120_000 };
  const module = (file: string) => new URL(file, import.meta.url).href;

  it.each([
    ["never returns", "did not return within 1000 ms"],
    ["throws", "a fault of a parser"],
    ["eats memory", "needs more than 512 MB"],
  ])(
    "ends a parser that %s, reports the seed and keeps the text",
    async (name, words) => {
      const bad = BAD_TARGETS.find((target) => target.name === name)!;
      const outcome = await feed(bad, {
        ...feeding,
        deadlineMs: name === "never returns" ? 1_000 : feeding.deadlineMs,
        module: module("bad-targets.ts"),
      });
      if (!("fault" in outcome)) throw new Error("expected a fault");
      expect(outcome.fault).toMatch(new RegExp(`^${name}, seed 7: .*${words}`));
      expect(readFileSync(outcome.file, "utf8")).toBe(mutate(bad.seeds, randomOf(7)));
      rmSync(path.dirname(outcome.file), { recursive: true });
    },
    150_000,
  );

  it("reports how many texts a good parser read", async () => {
    const outcome = await feed(TARGETS[0]!, { ...feeding, forMs: 100, module: module("targets.ts") });
    expect("texts" in outcome && outcome.texts).toBeGreaterThan(0);
  });

  it("reports a module that cannot be loaded as that", async () => {
    await expect(feed(TARGETS[0]!, { ...feeding, module: module("no-targets.ts") })).rejects.toThrow("no-targets");
  });
});
