import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { emptyState, forgetContext, learn, probabilities, stateOf } from "../../../src/forecasts/model/k7.ts";
import { createModel } from "../../../src/forecasts/model/model.ts";
import { pitHeights, pitMass, PIT_BINS, waitCdf } from "../../../src/forecasts/accuracy/figures/pit.ts";
import { emptySums, mergeSums } from "../../../src/forecasts/accuracy/figures/sums.ts";
import { windowsOf } from "../../../src/forecasts/model/windows.ts";
import { colorOf, trueGames } from "../true-games.ts";
import { addWait } from "../plain-sums.ts";

const bustabit = createModel({ thresholds: [200, 1000], edge: 0.01 });

/** Distribution of a wait, in ppm, of a forecaster that always expects one chance in seven. */
const oneInSeven = (n: number) => Math.floor((1 - (6 / 7) ** n) * 1e6);

describe("the mass of a wait", () => {
  // computed independently in Python from fractions
  test.each([
    [0, 99_000, [1_000_000, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
    [99_000, 188_199, [11_210, 988_790, 0, 0, 0, 0, 0, 0, 0, 0]],
    [0, 505_000, [198_019, 198_020, 198_020, 198_020, 198_020, 9_901, 0, 0, 0, 0]],
    [505_000, 754_975, [0, 0, 0, 0, 0, 380_038, 400_040, 219_922, 0, 0]],
    [123_457, 876_543, [0, 101_639, 132_787, 132_787, 132_787, 132_786, 132_787, 132_787, 101_640, 0]],
    [500_000, 500_001, [0, 0, 0, 0, 0, 1_000_000, 0, 0, 0, 0]],
    [899_999, 900_001, [0, 0, 0, 0, 0, 0, 0, 0, 500_000, 500_000]],
    // a step of no height lies in the bin above it, or in the last
    [500_000, 500_000, [0, 0, 0, 0, 0, 1_000_000, 0, 0, 0, 0]],
    [1_000_000, 1_000_000, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1_000_000]],
    [400_000, 500_000, [0, 0, 0, 0, 1_000_000, 0, 0, 0, 0, 0]],
  ])("between %i and %i ppm is what another language gets", (belowPpm, atPpm, mass) => {
    expect(pitMass({ belowPpm, atPpm })).toEqual(mass);
  });

  test("is a million ppm, none of it outside the step", () => {
    const anyStep = fc.tuple(fc.nat(1_000_000), fc.nat(1_000_000)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)]);
    fc.assert(
      fc.property(anyStep, ([belowPpm, atPpm]) => {
        const mass = pitMass({ belowPpm: belowPpm!, atPpm: atPpm! });
        expect(mass).toHaveLength(PIT_BINS);
        expect(mass.reduce((a, b) => a + b)).toBe(1_000_000);
        // a bin that ends before the step or begins after it holds nothing
        const outside = mass.filter((_, bin) => (bin + 1) * 100_000 < belowPpm! || bin * 100_000 > atPpm!);
        expect(outside.every((ppm) => ppm === 0)).toBe(true);
        expect(Math.min(...mass)).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  test("is even over the bins if waits occur as often as stated, whatever was stated", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 1, max: 999_999 }), { maxLength: 40 }), (cuts) => {
        const steps = [0, ...cuts.toSorted((a, b) => a - b), 1_000_000];
        const mass = Array.from({ length: PIT_BINS }, () => 0);
        for (let n = 1; n < steps.length; n++) {
          const step = { belowPpm: steps[n - 1]!, atPpm: steps[n]! };
          const chance = (step.atPpm - step.belowPpm) / 1e6;
          pitMass(step).forEach((ppm, bin) => (mass[bin]! += chance * ppm));
        }
        // no bound of a bin is off by more than the one ppm rounded away
        for (const ppm of mass) expect(Math.abs(ppm - 100_000)).toBeLessThanOrEqual(1.001);
      }),
    );
  });

  test("is refused if the two are no step of a distribution function", () => {
    for (const [belowPpm, atPpm] of [
      [-1, 5],
      [6, 5],
      [5, 1_000_001],
      [0.5, 1],
    ] as const)
      expect(() => pitMass({ belowPpm, atPpm })).toThrow("two rising probabilities");
  });
});

describe("the distribution that a state gives for a wait", () => {
  const state = emptyState(bustabit);
  for (const hundredths of trueGames(2000, 10_000)) learn(bustabit, state, colorOf(hundredths), hundredths >= 110);
  learn(bustabit, state, 2, true);

  test("begins with the next round, climbs without a gap and stays below one", () => {
    const steps = Array.from({ length: 60 }, (_, i) => waitCdf(bustabit, state, i + 1));
    expect(steps[0]!.belowPpm).toBe(0);
    expect(steps[0]!.atPpm).toBe(Math.floor(probabilities(bustabit, state)[2]! * 1e6 + 0.5));
    for (let n = 1; n < steps.length; n++) {
      expect(steps[n]!.belowPpm).toBe(steps[n - 1]!.atPpm);
      expect(steps[n]!.atPpm).toBeGreaterThan(steps[n]!.belowPpm);
    }
    expect(steps.at(-1)!.atPpm).toBeLessThan(1_000_000);
  });

  test("is what its windows say", () => {
    for (const window of windowsOf(bustabit, state, 2))
      expect(waitCdf(bustabit, state, window!.rounds).atPpm).toBe(window!.pPpm);
  });

  test("leaves the state as it was, and takes no wait of no rounds", () => {
    const before = [...state.memory];
    waitCdf(bustabit, state, 12);
    expect([...state.memory]).toEqual(before);
    for (const wrong of [0, -1, 1.5]) expect(() => waitCdf(bustabit, state, wrong)).toThrow("a wait of 1 round");
  });
});

describe("waits in an accuracy row", () => {
  test("for pink on 100,000 real games is even for K7, and not for a stated pink in seven", () => {
    const state = emptyState(bustabit);
    const [right, wrong] = [emptySums(), emptySums()];
    let since: { memory: Float64Array; rounds: number } | null = null;
    for (const hundredths of trueGames(100_000, 250_000)) {
      const color = colorOf(hundredths);
      learn(bustabit, state, color, hundredths >= 110);
      if (since !== null) since.rounds += 1;
      if (color !== 2) continue;
      if (since !== null) {
        addWait(right, pitMass(waitCdf(bustabit, stateOf(bustabit, since.memory), since.rounds)));
        addWait(wrong, pitMass({ belowPpm: oneInSeven(since.rounds - 1), atPpm: oneInSeven(since.rounds) }));
      }
      since = { memory: state.memory.slice(), rounds: 0 };
    }
    const { waits, heights } = pitHeights(right.pit)!;
    expect(waits).toBeGreaterThan(9_000);
    // about 9,900 waits: a bin's height varies by 0.03 at most
    for (const height of heights) expect(Math.abs(height - 1)).toBeLessThan(0.09);
    const off = pitHeights(wrong.pit)!.heights;
    expect(off[0]).toBeLessThan(0.8);
    expect(off.at(-1)).toBeGreaterThan(1.5);
  });

  test("merge, and are none before the first", () => {
    const rows = [pitMass({ belowPpm: 0, atPpm: 99_000 }), pitMass({ belowPpm: 99_000, atPpm: 188_199 })].map(
      (mass) => {
        const sums = emptySums();
        addWait(sums, mass);
        return sums;
      },
    );
    expect(pitHeights(mergeSums([...rows, emptySums()]).pit)).toEqual({
      waits: 2,
      heights: [5.05605, 4.94395, 0, 0, 0, 0, 0, 0, 0, 0],
    });
    expect(pitHeights(emptySums().pit)).toBeNull();
  });

  test("follow from the state even after missing rounds, when only the long run is known", () => {
    const state = emptyState(bustabit);
    for (const hundredths of trueGames(500, 10_000)) learn(bustabit, state, colorOf(hundredths), hundredths >= 110);
    forgetContext(bustabit, state);
    const { belowPpm, atPpm } = waitCdf(bustabit, state, 5);
    expect(atPpm).toBeGreaterThan(belowPpm);
  });
});
