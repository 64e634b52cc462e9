import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { baseline, emptyState, learn, probabilities } from "../../../src/forecasts/model/k7.ts";
import { createModel } from "../../../src/forecasts/model/model.ts";
import { nextColorPpm } from "../../../src/forecasts/model/ppm.ts";
import { bestLogLoss, figuresOf } from "../../../src/forecasts/accuracy/figures/figures.ts";
import {
  emptyReferenceSums,
  mergeReferenceSums,
  referenceDetails,
  referenceFigures,
} from "../../../src/forecasts/accuracy/figures/reference-sums.ts";
import {
  emptyReferences,
  forgetGaps,
  learnReferences,
  referencePpm,
  REFERENCES,
  referencesFromJson,
  referencesToJson,
  type References,
} from "../../../src/forecasts/accuracy/figures/references.ts";
import { scoreNextColor, scoreWindow } from "../../../src/forecasts/score/scoring.ts";
import { emptySums } from "../../../src/forecasts/accuracy/figures/sums.ts";
import { windowBaselinePpm, windowsOf } from "../../../src/forecasts/model/windows.ts";
import { readFixture } from "../streams.ts";
import { colorOf, trueGames } from "../true-games.ts";
import { addScore, scoreReferences } from "../plain-sums.ts";

/** Colors of rounds; null where rounds are missing before the next. */
const anyHistory = fc
  .integer({ min: 2, max: 8 })
  .chain((colors) =>
    fc.tuple(
      fc.constant(colors),
      fc.array(fc.option(fc.nat(colors - 1), { freq: 30, nil: null }), { maxLength: 260, size: "max" }),
    ),
  );

const after = (colors: number, history: readonly (number | null)[], references = emptyReferences(colors)) => {
  for (const color of history) {
    if (color === null) forgetGaps(references);
    else learnReferences(references, color);
  }
  return references;
};

describe("references", () => {
  // Computed independently in Python with fractions, from the definitions alone and without any running count.
  test("say on 3,000 true rounds what another language gets, and score the same", () => {
    const references = emptyReferences(3);
    const sums = emptyReferenceSums();
    const texts = REFERENCES.map(() => createHash("sha256"));
    const sample: Record<number, number[][]> = {};
    readFixture("k7_golden.csv").forEach((row, i) => {
      if (row.after_gap === "1") forgetGaps(references);
      const forecasts = REFERENCES.map((name) => referencePpm(references, name));
      forecasts.forEach((ppm, k) => texts[k]!.update(`${ppm.join("|")}\n`));
      if ([5, 20, 100, 2999].includes(i)) sample[i] = forecasts;
      const color = colorOf(Math.round(Number(row.multiplier) * 100));
      scoreReferences(sums, references, {
        basePpm: row.base_ppm!.split("|").map(Number),
        horizon: 1,
        outcome: color,
      });
      learnReferences(references, color);
    });
    expect(sample).toEqual({
      5: [
        [375000, 375000, 250000],
        [375000, 375000, 250000],
        [303797, 372152, 324051],
      ],
      20: [
        [478261, 391304, 130435],
        [478261, 391304, 130435],
        [397175, 401257, 201568],
      ],
      100: [
        [521739, 434783, 43478],
        [495146, 398058, 106796],
        [343056, 407526, 249418],
      ],
      2999: [
        [478261, 304348, 217391],
        [514563, 339806, 145631],
        [503665, 392405, 103930],
      ],
    });
    expect(texts.map((text) => text.digest("hex"))).toEqual([
      "9c1df55d88dbb1b01f773f83497b37cf5bb9b3d91e078bd8cd1cdd7ed5f3b4c5",
      "4eef4354b44527a9e01ec2659b3b9917c3be9e05997a872273ba0af7a9b879c1",
      "78e8a4d280a0b1d7276d7c8779f5e1241d4c2a6ff6254e3b8cf493370242004f",
    ]);
    expect(REFERENCES.map((name) => [sums[name].sumLl, sums[name].sumBrier])).toEqual([
      [2974998756n, 1825562524519496n],
      [2871085320n, 1760157020010964n],
      [2931347782n, 1811124644178072n],
    ]);
  });

  test("lose to the long-run shares on 60,000 true games, and K7 does not", () => {
    const model = createModel({ thresholds: [200, 1000], edge: 0.01 });
    const state = emptyState(model);
    const references = emptyReferences(3);
    const sums = emptyReferenceSums();
    const ours = emptySums();
    for (const hundredths of trueGames(60_000, 1_000_000)) {
      const color = colorOf(hundredths);
      const basePpm = nextColorPpm(baseline(model, state));
      scoreReferences(sums, references, { basePpm, horizon: 1, outcome: color });
      addScore(ours, scoreNextColor(nextColorPpm(probabilities(model, state)), basePpm, color));
      learnReferences(references, color);
      learn(model, state, color, hundredths >= 110);
    }
    const skills = Object.fromEntries(
      referenceFigures(sums, bestLogLoss(ours)).map(({ name, skill }) => [name, skill!]),
    );
    expect(skills.last_20).toBeGreaterThan(-0.048);
    expect(skills.last_20).toBeLessThan(-0.036);
    expect(skills.last_100).toBeGreaterThan(-0.013);
    expect(skills.last_100).toBeLessThan(-0.008);
    expect(skills.due).toBeGreaterThan(-0.042);
    expect(skills.due).toBeLessThan(-0.032);
    expect(Math.abs(1 - Number(ours.sumLl) / Number(ours.sumLlBase))).toBeLessThan(0.0005);
    expect(referenceFigures(sums, null).map(({ brier }) => brier! > Number(ours.sumBrier) / 60_000e12)).toEqual([
      true,
      true,
      true,
    ]);
  });

  test("lose on windows of 60,000 real games too, and the probabilities of K7 hold", () => {
    const model = createModel({ thresholds: [200, 1000], edge: 0.01 });
    const state = emptyState(model);
    const references = emptyReferences(3);
    const sums = emptyReferenceSums();
    const ours = emptySums();
    let open: { memory: References; pPpm: number; basePpm: number; rounds: number; left: number; hit: boolean } | null =
      null;
    for (const hundredths of trueGames(60_000, 1_000_000)) {
      if (open === null) {
        const { rounds, pPpm } = windowsOf(model, state, 2)[1]!;
        const memory = referencesFromJson(referencesToJson(references));
        open = { memory, pPpm, basePpm: windowBaselinePpm(model, state, 2, rounds), rounds, left: rounds, hit: false };
      }
      const color = colorOf(hundredths);
      open.left -= 1;
      open.hit ||= color === 2;
      if (open.left === 0) {
        const { memory, pPpm, basePpm, rounds, hit } = open;
        scoreReferences(sums, memory, { basePpm: [basePpm], horizon: rounds, outcome: Number(hit) }, 2);
        addScore(ours, scoreWindow(pPpm, basePpm, hit));
        open = null;
      }
      learnReferences(references, color);
      learn(model, state, color, hundredths >= 110);
    }
    const { z, n } = { z: figuresOf("window:pink:80", ours).z!, n: Number(ours.n) };
    expect(n).toBeGreaterThan(3500);
    expect(Math.abs(z)).toBeLessThan(3);
    const share = Number(ours.hits) / n;
    const constant = -(share * Math.log(share) + (1 - share) * Math.log(1 - share));
    for (const one of referenceDetails(sums, constant)) {
      expect(one.sample_size).toBe(n);
      expect(one.hit_rate).toBe(Number(ours.hits) / n);
      expect(one.skill, one.name).toBeLessThan(-0.01);
    }
    const [last20, last100, due] = referenceDetails(sums, constant).map((one) => one.skill!);
    expect(last20).toBeLessThan(last100!);
    expect(due).toBeLessThan(last100!);
  });

  test("of rows are the same in any grouping", () => {
    const anyScore = fc.record({ p: fc.integer({ min: 1, max: 999_998 }), outcome: fc.nat(2), history: fc.nat(2) });
    fc.assert(
      fc.property(fc.array(fc.tuple(anyScore, fc.nat(2)), { maxLength: 25 }), (scores) => {
        const sumOf = (wanted: readonly number[]) => {
          const sums = emptyReferenceSums();
          for (const [{ p, outcome, history }, group] of scores) {
            if (!wanted.includes(group)) continue;
            const basePpm = [p, 1_000_000 - p - 1, 1];
            scoreReferences(sums, after(3, [history]), { basePpm, horizon: 1, outcome });
          }
          return sums;
        };
        const whole = sumOf([0, 1, 2]);
        expect(mergeReferenceSums([sumOf([2]), mergeReferenceSums([sumOf([0]), sumOf([1])])])).toEqual(whole);
      }),
    );
  });

  test("are the counts of the newest rounds, however many precede them", () => {
    fc.assert(
      fc.property(anyHistory, ([colors, history]) => {
        const references = after(colors, history);
        const rounds = history.filter((color) => color !== null);
        for (const [name, length] of [
          ["last_20", 20],
          ["last_100", 100],
        ] as const) {
          const newest = rounds.slice(-length);
          referencePpm(references, name).forEach((ppm, k) => {
            const share = (newest.filter((color) => color === k).length + 1) / (newest.length + colors);
            expect(Math.abs(ppm - share * 1e6)).toBeLessThan(1);
          });
        }
      }),
    );
  });

  test("always sum to a million, every color at least 1", () => {
    fc.assert(
      fc.property(anyHistory, ([colors, history]) => {
        const references = after(colors, history);
        for (const name of REFERENCES) {
          const ppm = referencePpm(references, name);
          expect(ppm.reduce((a, b) => a + b)).toBe(1_000_000);
          expect(Math.min(...ppm)).toBeGreaterThan(0);
        }
      }),
    );
    const once = after(
      2,
      Array.from({ length: 2_500_000 }, () => 0),
    );
    expect(referencePpm(once, "due")).toEqual([999_999, 1]);
  });

  test("call a color due the more, the longer it is absent, and forget that after missing rounds", () => {
    const references = after(3, [0, 1, 2, 0, 1, 2, 0, 1]);
    const pink = () => referencePpm(references, "due")[2]!;
    for (let round = 0; round < 20; round++) {
      // the shares move too: two of blue and purple leave pink's falling
      learnReferences(references, 2);
      const before = pink();
      learnReferences(references, round % 2);
      learnReferences(references, (round + 1) % 2);
      expect(pink()).toBeGreaterThan(before);
    }
    const due = pink();
    forgetGaps(references);
    const [blue, purple, forgotten] = referencePpm(references, "due");
    expect(forgotten).toBeLessThan(due);
    const rounds = references.rounds + 3;
    references.counts.forEach((count, k) =>
      expect(Math.abs([blue!, purple!, forgotten!][k]! - ((count + 1) / rounds) * 1e6)).toBeLessThan(2),
    );
  });

  test("continue from their JSON without a difference", () => {
    fc.assert(
      fc.property(anyHistory, fc.nat(260), ([colors, history], cut) => {
        const whole = after(colors, history);
        const json = JSON.stringify(referencesToJson(after(colors, history.slice(0, cut))));
        const resumed = after(colors, history.slice(cut), referencesFromJson(JSON.parse(json)));
        expect(referencesToJson(resumed)).toEqual(referencesToJson(whole));
        expect(resumed).toEqual(whole);
      }),
    );
  });

  test.each<[string, unknown]>([
    ["there is none", null],
    ["a count is negative", { counts: [-1, 2], gaps: [null, 0], recent: [1] }],
    ["a gap is missing", { counts: [0, 1], gaps: [0], recent: [1] }],
    ["newest rounds are missing", { counts: [1, 1], gaps: [1, 0], recent: [1] }],
    ["a color is unknown", { counts: [0, 1], gaps: [null, 0], recent: [2] }],
    ["something was added", { counts: [0, 1], gaps: [null, 0], recent: [1], note: "" }],
  ])("are refused when %s", (_, json) => {
    expect(() => referencesFromJson(json)).toThrow(/^expected .* from the rounds$/s);
  });

  test("refuse a color the table does not have", () => {
    for (const wrong of [-1, 3, 0.5]) expect(() => learnReferences(emptyReferences(3), wrong)).toThrow("from 0 to 2");
  });
});
