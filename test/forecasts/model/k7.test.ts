import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { baseline, emptyState, forgetContext, learn, probabilities, weights } from "../../../src/forecasts/model/k7.ts";
import { createModel, EXPERT_COUNT, gapBin, HAZARD, MARKOV } from "../../../src/forecasts/model/model.ts";
import { EXPERTS, K7_1 } from "../../../src/forecasts/model/parameters.ts";
import { nextColorPpm } from "../../../src/forecasts/model/ppm.ts";
import { approach, generatedRounds, readFixture, stateAfter, takeIn } from "../streams.ts";

const bustabit = createModel({ thresholds: [200, 1000], edge: 0.01 });

/** Ascending thresholds for 2 to 8 bands, from barely above 1.00 to very high. */
const anyThresholds = fc
  .uniqueArray(fc.integer({ min: 101, max: 200_000 }), { minLength: 1, maxLength: 7 })
  .map((thresholds) => thresholds.toSorted((a, b) => a - b));

describe("K7", () => {
  test("gives every forecast and baseline of the reference model on 3,000 true rounds to the last ppm", () => {
    const state = emptyState(bustabit);
    const rows = readFixture("k7_golden.csv");
    expect(rows).toHaveLength(3000);
    for (const row of rows) {
      const round = { hundredths: Math.round(Number(row.multiplier) * 100), afterGap: row.after_gap === "1" };
      approach(bustabit, state, round);
      expect(
        {
          p: nextColorPpm(probabilities(bustabit, state)).join("|"),
          base: nextColorPpm(baseline(bustabit, state)).join("|"),
        },
        `game ${row.game}`,
      ).toEqual({ p: row.p_ppm, base: row.base_ppm });
      takeIn(bustabit, state, round);
    }
  });

  // k7_bands.csv comes from a second implementation, in Python, written from the formulas alone.
  test.each([
    { bands: "198", edge: null },
    { bands: "120|150|200|1000", edge: 0.05 },
    { bands: "101|102|150|200|500|1000|10000", edge: 0 },
  ])("agrees with a second implementation on the bands $bands", ({ bands, edge }) => {
    const model = createModel({ thresholds: bands.split("|").map(Number), edge });
    const state = emptyState(model);
    const forecasts = generatedRounds(2000).map((round, i) => {
      approach(model, state, round);
      const [p, base] = [probabilities(model, state), baseline(model, state)].map((shares) => nextColorPpm(shares));
      takeIn(model, state, round);
      return { round: `${i + 1}`, p_ppm: p!.join("|"), base_ppm: base!.join("|") };
    });
    const expected = readFixture("k7_bands.csv").filter((row) => row.bands === bands);
    expect(expected).toHaveLength(11);
    for (const row of expected) expect(row).toMatchObject(forecasts[Number(row.round) - 1]!);
  });

  test("keeps every color possible and the sum at 1 on any bands, edge and rounds", () => {
    fc.assert(
      fc.property(
        anyThresholds,
        fc.option(fc.double({ min: 0, max: 0.99, noNaN: true }), { nil: null }),
        fc.array(fc.record({ hundredths: fc.integer({ min: 100, max: 300_000 }), afterGap: fc.boolean() })),
        (thresholds, edge, rounds) => {
          const model = createModel({ thresholds, edge });
          const state = stateAfter(model, rounds);
          const p = [...probabilities(model, state)];
          expect(p.every((share) => share > 0 && share < 1)).toBe(true);
          expect(p.reduce((a, b) => a + b)).toBeCloseTo(1, 12);
          expect(weights(model, state).reduce((a, b) => a + b)).toBeCloseTo(1, 12);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("begins with theory at the declared edge, and at 3 % if none is declared", () => {
    expect(nextColorPpm(probabilities(bustabit, emptyState(bustabit)))).toEqual([505000, 396000, 99000]);
    const undeclared = createModel({ thresholds: [200, 1000], edge: null });
    expect(nextColorPpm(probabilities(undeclared, emptyState(undeclared)))).toEqual([515000, 388000, 97000]);
  });

  test("leaves theory a chance for every band even if every round reaches 1.10", () => {
    const model = createModel({ thresholds: [105, 106, 107], edge: 0 });
    const state = emptyState(model);
    for (let i = 0; i < 5000; i++) learn(model, state, 3, true);
    probabilities(model, state);
    const above = [1, 0.999, 0.99 * 0.999, 0.99 * (0.99 * 0.999), 0];
    const theory = [...state.experts.subarray(4, 8)];
    expect(theory).toEqual([above[0]! - above[1]!, above[1]! - above[2]!, above[2]! - above[3]!, above[3]!]);
  });

  test("lets M1 and G forecast as the long run while the previous color is unknown", () => {
    const state = stateAfter(bustabit, generatedRounds(500));
    const expert = (i: number) => [...state.experts.subarray(3 * i, 3 * i + 3)];
    const longRun = [...baseline(bustabit, state)];
    expect(expert(MARKOV)).not.toEqual(longRun);
    expect(expert(HAZARD)).not.toEqual(longRun);
    forgetContext(bustabit, state);
    probabilities(bustabit, state);
    expect(expert(MARKOV)).toEqual(longRun);
    expect(expert(HAZARD)).toEqual(longRun);
  });

  test("knows the color again after one round, the gap only after the next top color", () => {
    const state = stateAfter(bustabit, generatedRounds(500));
    const { at } = bustabit;
    forgetContext(bustabit, state);
    const transitionsSum = () => state.memory.subarray(at.transitions, at.hits).reduce((a, b) => a + b);
    const before = transitionsSum();
    learn(bustabit, state, 0, true);
    expect(transitionsSum()).toBe(before);
    expect([state.memory[at.previous], state.memory[at.gap]]).toEqual([0, -1]);
    learn(bustabit, state, 2, true);
    expect(transitionsSum()).toBe(before + 1);
    expect([state.memory[at.previous], state.memory[at.gap]]).toEqual([2, 0]);
    learn(bustabit, state, 1, true);
    expect([state.memory[at.previous], state.memory[at.gap]]).toEqual([1, 1]);
  });

  test("puts gaps into nine bins of which the last is open", () => {
    const gaps = [0, 1, 2, 3, 4, 5, 7, 8, 11, 12, 17, 18, 27, 28, 44, 45, 46, 10_000];
    expect(gaps.map((gap) => gapBin(bustabit, gap))).toEqual([0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 8]);
  });

  test("gives the Markov expert the weight if rounds depend on the previous one", () => {
    const state = emptyState(bustabit);
    for (let i = 0; i < 3000; i++) learn(bustabit, state, i % 3, true);
    expect(weights(bustabit, state)[EXPERTS.indexOf("M1")]).toBeGreaterThan(0.99);
    // 3000 rounds end on color 2, so color 0 follows
    expect(probabilities(bustabit, state)[0]).toBeGreaterThan(0.9);
  });

  test("never loses an expert permanently", () => {
    const state = emptyState(bustabit);
    for (let i = 0; i < 20_000; i++) learn(bustabit, state, i % 3, true);
    const least = (K7_1.share * 1) / 11;
    expect(Math.min(...weights(bustabit, state))).toBeGreaterThanOrEqual(least);
    expect(weights(bustabit, state)).toHaveLength(EXPERT_COUNT);
  });

  test("refuses bands, edges and colors that cannot be", () => {
    expect(() => createModel({ thresholds: [], edge: null })).toThrow("expected 2 to 8 colors, got 1");
    expect(() => createModel({ thresholds: [110, 120, 130, 140, 150, 160, 170, 180], edge: null })).toThrow("got 9");
    expect(() => createModel({ thresholds: [100], edge: null })).toThrow("above 100, got 100");
    expect(() => createModel({ thresholds: [200, 200], edge: null })).toThrow("above 200, got 200");
    expect(() => createModel({ thresholds: [200.5], edge: null })).toThrow("got 200.5");
    expect(() => createModel({ thresholds: [200], edge: 1 })).toThrow("house edge");
    for (const color of [-1, 3, 0.5, Number.NaN])
      expect(() => learn(bustabit, emptyState(bustabit), color, true)).toThrow("expected a color from 0 to 2");
  });
});
