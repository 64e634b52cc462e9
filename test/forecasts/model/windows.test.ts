import { WINDOW_ROUNDS_MAX, WINDOW_TARGETS } from "../../../src/forecasts/model/features.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  baseline,
  emptyState,
  forgetContext,
  learn,
  probabilities,
  type State,
} from "../../../src/forecasts/model/k7.ts";
import { createModel, EXPERT_COUNT, gapBin, HAZARD, MARKOV, type Model } from "../../../src/forecasts/model/model.ts";
import { hitProbability, windowBaselinePpm, windowsOf } from "../../../src/forecasts/model/windows.ts";
import { approach, generatedRounds, readFixture, stateAfter, takeIn } from "../streams.ts";

const bustabit = createModel({ thresholds: [200, 1000], edge: 0.01 });
const colorNames = ["blue", "purple", "pink"];

const windowText = (model: Model, state: State, color: number) =>
  windowsOf(model, state, color).map((window) => (window === null ? "-" : `${window.rounds}:${window.pPpm}`));

describe("windows", () => {
  test("are those of the reference model on 3,000 true rounds to the last ppm", () => {
    const state = emptyState(bustabit);
    for (const row of readFixture("k7_golden.csv")) {
      const round = { hundredths: Math.round(Number(row.multiplier) * 100), afterGap: row.after_gap === "1" };
      approach(bustabit, state, round);
      const expected = colorNames.map((name) => WINDOW_TARGETS.map((target) => row[`window:${name}:${target}`]));
      expect(
        colorNames.map((_, color) => windowText(bustabit, state, color)),
        `game ${row.game}`,
      ).toEqual(expected);
      takeIn(bustabit, state, round);
    }
  });

  // k7_bands.csv comes from a second implementation, in Python, written from the formulas alone.
  test.each([
    { bands: "198", edge: null },
    { bands: "120|150|200|1000", edge: 0.05 },
    { bands: "101|102|150|200|500|1000|10000", edge: 0 },
  ])("agree with a second implementation on the bands $bands", ({ bands, edge }) => {
    const model = createModel({ thresholds: bands.split("|").map(Number), edge });
    const state = emptyState(model);
    const texts = generatedRounds(2000).map((round) => {
      approach(model, state, round);
      const windows = Array.from({ length: model.colors }, (_, color) => windowText(model, state, color).join(" "));
      takeIn(model, state, round);
      return windows.join(" ");
    });
    const expected = readFixture("k7_bands.csv").filter((row) => row.bands === bands);
    expect(expected).toHaveLength(11);
    for (const row of expected) expect(texts[Number(row.round) - 1], `round ${row.round}`).toBe(row.windows);
  });

  test("hold the smallest number of rounds that reaches the target, and its probability", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 600 }), fc.integer({ min: 0, max: 2 }), (rounds, color) => {
        const state = stateAfter(bustabit, generatedRounds(rounds));
        windowsOf(bustabit, state, color).forEach((window, i) => {
          const target = WINDOW_TARGETS[i]! / 100;
          const p = hitProbability(bustabit, state, color, window!.rounds);
          expect(p).toBeGreaterThanOrEqual(target);
          expect(hitProbability(bustabit, state, color, window!.rounds - 1)).toBeLessThan(target);
          expect(window!.pPpm).toBe(Math.floor(p * 1e6 + 0.5));
        });
      }),
      { numRuns: 60 },
    );
  });

  test("never lose probability as they grow, and begin with that of the next round", () => {
    const state = stateAfter(bustabit, generatedRounds(300));
    for (const color of [0, 1, 2]) {
      const p = Array.from({ length: 40 }, (_, n) => hitProbability(bustabit, state, color, n));
      expect(p[0]).toBe(0);
      expect(p[1]).toBeCloseTo(probabilities(bustabit, state)[color]!, 14);
      for (let n = 1; n < p.length; n++) expect(p[n]).toBeGreaterThan(p[n - 1]!);
    }
  });

  test.each([0, 1, 2])("follow every path of colors that each expert believes in (color %i)", (color) => {
    const state = stateAfter(bustabit, generatedRounds(136));
    for (const rounds of [1, 2, 3, 6])
      expect(hitProbability(bustabit, state, color, rounds)).toBeCloseTo(1 - missByPaths(state, color, rounds), 12);
  });

  test("see the same chance every round from all experts when the context is unknown", () => {
    const state = stateAfter(bustabit, generatedRounds(300));
    forgetContext(bustabit, state);
    probabilities(bustabit, state);
    let miss = 0;
    for (let i = 0; i < EXPERT_COUNT; i++) miss += weightOf(state, i) * (1 - state.experts[3 * i + 2]!) ** 5;
    expect(hitProbability(bustabit, state, 2, 5)).toBeCloseTo(1 - miss, 14);
  });

  test("are not issued if 400 rounds stay below the target", () => {
    const rare = createModel({ thresholds: [200, 80_000], edge: 0.01 });
    const state = emptyState(rare);
    const p = hitProbability(rare, state, 2, WINDOW_ROUNDS_MAX);
    expect(p).toBeLessThan(0.5);
    expect(windowsOf(rare, state, 2)).toEqual([null, null, null]);
    const rather = createModel({ thresholds: [200, 30_000], edge: 0.01 });
    const [half, eighty] = windowsOf(rather, emptyState(rather), 2);
    expect(half).not.toBeNull();
    expect(eighty).toBeNull();
  });

  test("are never certain, whatever the color", () => {
    const model = createModel({ thresholds: [900_000_000], edge: 0.01 });
    const state = emptyState(model);
    for (let i = 0; i < 5000; i++) learn(model, state, 0, true);
    expect(windowsOf(model, state, 0).every((window) => window!.pPpm <= 999_999)).toBe(true);
    expect(windowBaselinePpm(model, state, 0, 400)).toBe(999_999);
    expect(windowBaselinePpm(model, state, 1, 1)).toBe(1);
  });

  test("have the result of the long-run share alone next to them", () => {
    const state = emptyState(bustabit);
    expect(windowBaselinePpm(bustabit, state, 2, 16)).toBe(Math.round((1 - 0.901 ** 16) * 1e6));
    learn(bustabit, state, 2, true);
    const b = baseline(bustabit, state)[2]!;
    expect(windowBaselinePpm(bustabit, state, 2, 3)).toBe(Math.round((1 - (1 - b) ** 3) * 1e6));
  });

  test("of a color that does not exist are refused", () => {
    expect(() => windowsOf(bustabit, emptyState(bustabit), 3)).toThrow("expected a color from 0 to 2, got 3");
  });
});

function weightOf(state: State, expert: number): number {
  return state.memory[bustabit.at.weights + expert]!;
}

/** Probability that the color stays away, by adding up every path without it: slow, and nothing like the walk. */
function missByPaths(state: State, color: number, rounds: number): number {
  probabilities(bustabit, state);
  let miss = 0;
  for (let expert = 0; expert < EXPERT_COUNT; expert++) {
    const chance = (previous: number, next: number, n: number) => {
      if (expert === MARKOV) return state.transitions[3 * previous + next]!;
      if (expert === HAZARD && color === 2) {
        const hazard = state.hazards[gapBin(bustabit, state.memory[bustabit.at.gap]! + n)]!;
        const longRun = baseline(bustabit, state);
        return ((1 - hazard) * longRun[next]!) / (longRun[0]! + longRun[1]!);
      }
      return state.experts[3 * expert + next]!;
    };
    const walk = (previous: number, n: number): number =>
      n === rounds
        ? 1
        : [0, 1, 2].reduce(
            (sum, next) => (next === color ? sum : sum + chance(previous, next, n) * walk(next, n + 1)),
            0,
          );
    miss += weightOf(state, expert) * walk(state.memory[bustabit.at.previous]!, 0);
  }
  return miss;
}
