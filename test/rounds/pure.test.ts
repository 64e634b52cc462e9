import { join } from "node:path";
import { describe, expect, it } from "vitest";
import * as colors from "../../src/rounds/colors.ts";
import { gapsShownWhole } from "../../src/rounds/gaps/gaps.ts";
import { pauseBetweenPages, waitAfterAttempts } from "../../src/backfill/gap-plan.ts";
import { verdictOf } from "../../src/rounds/notices/format-watch.ts";
import * as notices from "../../src/rounds/notices/notices.ts";
import * as round from "../../src/rounds/round.ts";
import { listExamples, runExample } from "../support/examples.ts";

const MODULES = { "colors.ts": colors, "notices/notices.ts": notices, "round.ts": round };

describe("examples in comments", () => {
  for (const [file, exports] of Object.entries(MODULES)) {
    for (const example of listExamples(join(import.meta.dirname, "../../src/rounds", file))) {
      it(`${example.title} is true`, () => {
        for (const { actual, expected } of runExample(example, exports)) expect(actual).toEqual(expected);
      });
    }
  }
});

describe("the color of a multiplier", () => {
  const palette = [
    { name: "blue", below: 200 },
    { name: "purple", below: 1000 },
    { name: "pink", below: null },
  ];

  it.each([
    [100, "blue"],
    [199, "blue"],
    [200, "purple"],
    [999, "purple"],
    [1000, "pink"],
    [100_000_000_000, "pink"],
  ])("of %i hundredths is %s", (hundredths, color) => {
    expect(colors.colorOf(hundredths, palette)).toBe(color);
  });

  it("is an error if the palette has no last band", () => {
    expect(() => colors.colorOf(300, palette.slice(0, 1))).toThrow(RangeError);
  });
});

describe("the sentence of a notice of gaps", () => {
  const since = "2026-11-21T04:00:59.1234560Z";
  const gap = { ranges: 1, missing: 3n, from: 812n, to: 814n, unknown: 0, since, isTrying: true, reason: null };

  it.each([
    [{}, "3 rounds (812 to 814) are missing since 2026-11-21 04:00 UTC; trying to fetch them"],
    [{ missing: 1n, to: 812n }, "1 round (812) is missing since 2026-11-21 04:00 UTC; trying to fetch it"],
    [{ missing: 2n }, "2 of the rounds 812 to 814 are missing since 2026-11-21 04:00 UTC; trying to fetch them"],
    [{ missing: 1n }, "1 of the rounds 812 to 814 is missing since 2026-11-21 04:00 UTC; trying to fetch it"],
    [
      { ranges: 2, missing: 7n, to: 951n },
      "7 rounds in 2 gaps (812 to 951) are missing since 2026-11-21 04:00 UTC; trying to fetch them",
    ],
    [
      { isTrying: false, reason: "the house's history ends at 815" },
      "3 rounds (812 to 814) are missing since 2026-11-21 04:00 UTC; they could not be fetched: the house's history ends at 815",
    ],
    [
      { ranges: 0, missing: 0n, from: null, to: null, unknown: 1 },
      "an unknown number of rounds are missing since 2026-11-21 04:00 UTC; trying to fetch them",
    ],
    [
      { ranges: 0, missing: 0n, from: null, to: null, unknown: 2, isTrying: false },
      "an unknown number of rounds in 2 places are missing since 2026-11-21 04:00 UTC; they could not be fetched",
    ],
  ])("%o → %s", (changed, sentence) => {
    expect(notices.gapSentence({ ...gap, ...changed })).toBe(sentence);
  });
});

describe("a changed format", () => {
  const since = "2026-11-21T04:00:59Z";

  it("is reported if at least four of five items cannot be read", () => {
    expect(verdictOf({ items: 5, refused: 4, kept: 4, isPage: false })).toBe("refused");
    expect(notices.formatSentence({ items: 50, refused: 48 }, since, false)).toBe(
      "the house seems to have changed its format since 2026-11-21 04:00 UTC: 48 of the 50 items of its newest response cannot be read",
    );
  });

  it("ends with a response that is mostly good, and ignores a few items or none", () => {
    expect(verdictOf({ items: 50, refused: 39, kept: 39, isPage: false })).toBe("good");
    expect(verdictOf({ items: 4, refused: 4, kept: 4, isPage: false })).toBe("unknown");
    expect(verdictOf({ items: 0, refused: 0, kept: 0, isPage: false })).toBe("unknown");
  });
});

describe("a gap of unknown size", () => {
  const gap = { afterRoundId: "a", beforeRoundId: "d" };

  it("is closed by a response that lists both its ends and all between", () => {
    expect(gapsShownWhole(["a", "b", "c", "d", "e"], [gap])).toEqual([{ ...gap, found: 2 }]);
  });

  it.each([[["b", "c", "d"]], [["a", "b", "c"]], [["a", null, "c", "d"]], [["d", "c", "a"]]])(
    "is not closed by %j",
    (sequence) => {
      expect(gapsShownWhole(sequence, [gap])).toEqual([]);
    },
  );
});

describe("patience", () => {
  it("a gap waits three times longer after each failed attempt, an hour at most", () => {
    expect([1, 2, 3, 7, 8].map(waitAfterAttempts)).toEqual([5_000, 15_000, 45_000, 3_600_000, 3_600_000]);
  });

  it("a house is asked for pages no faster than it is polled, and never faster than five times a second", () => {
    expect([pauseBetweenPages(100), pauseBetweenPages(2_000)]).toEqual([200, 2_000]);
  });
});
