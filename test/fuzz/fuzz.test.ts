import { describe, expect, it } from "vitest";
import { mutate, randomOf } from "./mutate.ts";
import { TARGETS } from "./targets.ts";

describe("[FUZZ] every parser of outside text", () => {
  it.each(TARGETS)(
    "$name reads what it is made for, and survives fifty texts that are nearly that",
    ({ seeds, run }) => {
      for (const seed of seeds) expect(() => run(seed)).not.toThrow();
      for (let seed = 1; seed <= 50; seed += 1) expect(() => run(mutate(seeds, randomOf(seed)))).not.toThrow();
    },
  );

  it("gets the same texts from the same seed", () => {
    const texts = ["abc", "[1,2,3]"];
    const some = (seed: number) => Array.from({ length: 5 }, (_, at) => mutate(texts, randomOf(seed + at)));
    expect(some(7)).toEqual(some(7));
    expect(some(7)).not.toEqual(some(8));
  });
});
