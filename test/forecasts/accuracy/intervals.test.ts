import fc from "fast-check";
import { mean, sampleStandardDeviation } from "simple-statistics";
import { describe, expect, test } from "vitest";
import { rateBounds, skillInterval, wilsonInterval } from "../../../src/forecasts/accuracy/figures/intervals.ts";

describe("Wilson's interval", () => {
  // Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
  test.each([
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ])("of %i in %i is the one in print", (hits, n, low, high) => {
    expect(wilsonInterval(hits, n)!.map((end) => Number(end.toFixed(4)))).toEqual([low, high]);
  });

  test("holds the share, stays within 0 and 1, and mirrors when hits and misses are exchanged", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000_000 }), fc.double({ min: 0, max: 1, noNaN: true }), (n, share) => {
        const hits = Math.round(share * n);
        const [low, high] = wilsonInterval(hits, n)!;
        expect(low).toBeGreaterThanOrEqual(0);
        expect(high).toBeLessThanOrEqual(1);
        expect(low).toBeLessThanOrEqual(hits / n);
        expect(high).toBeGreaterThanOrEqual(hits / n);
        const [mirroredLow, mirroredHigh] = wilsonInterval(n - hits, n)!;
        expect(mirroredLow).toBeCloseTo(1 - high, 12);
        expect(mirroredHigh).toBeCloseTo(1 - low, 12);
      }),
    );
  });

  test("covers the truth 95 times in 100, as Brown, Cai & DasGupta measured", () => {
    // exact coverage at n = 20, p = 0.05: the sum of the binomial chances whose interval holds p
    let coverage = 0;
    let chance = 0.95 ** 20;
    for (let hits = 0; hits <= 20; hits++) {
      const [low, high] = wilsonInterval(hits, 20)!;
      if (low <= 0.05 && 0.05 <= high) coverage += chance;
      chance *= ((20 - hits) / (hits + 1)) * (0.05 / 0.95);
    }
    expect(coverage).toBeCloseTo(0.925, 3);
  });
});

/** Gains and baselines as an accuracy row sums them. */
const sumsOf = (pairs: readonly (readonly [d: number, llBase: number])[]) => ({
  n: BigInt(pairs.length),
  sumD: pairs.reduce((sum, [d]) => sum + BigInt(d), 0n),
  sumD2: pairs.reduce((sum, [d]) => sum + BigInt(d) ** 2n, 0n),
  sumLlBase: pairs.reduce((sum, [, llBase]) => sum + BigInt(llBase), 0n),
});

describe("the interval of a paired gain", () => {
  // computed independently in Python (numpy, from the single gains)
  test("is the one another language gets", () => {
    const gains = [19_609, 20_000, -30_772, 12, -7_269, 4_000];
    const baselines = [683_197, 2_312_635, 926_341, 500_000, 1_660_731, 700_000];
    const [low, high] = skillInterval(sumsOf(gains.map((d, i) => [d, baselines[i]!])))!;
    expect(low).toBeCloseTo(-0.012588452813965147, 15);
    expect(high).toBeCloseTo(0.01423376579495382, 15);
  });

  test("is mean ± 1.96 standard errors of the gains over the mean baseline", () => {
    const anyPair = fc.tuple(fc.integer({ min: -5_000_000, max: 5_000_000 }), fc.integer({ min: 1, max: 13_815_511 }));
    fc.assert(
      fc.property(fc.array(anyPair, { minLength: 2, maxLength: 50 }), (pairs) => {
        const gains = pairs.map(([d]) => d);
        const error = (1.959963984540054 * sampleStandardDeviation(gains)) / Math.sqrt(gains.length);
        const baseline = mean(pairs.map(([, llBase]) => llBase));
        const [low, high] = skillInterval(sumsOf(pairs))!;
        expect(low).toBeCloseTo((mean(gains) - error) / baseline, 9);
        expect(high).toBeCloseTo((mean(gains) + error) / baseline, 9);
      }),
    );
  });

  test("keeps its digits if a million great gains differ by a little", () => {
    // half of them 9,123,458 and half 9,123,456: a standard deviation of 1, lost in doubles of squares near 8.3e13
    const n = 999_998n;
    const sumD2 = (n / 2n) * (9_123_458n ** 2n + 9_123_456n ** 2n);
    const [low, high] = skillInterval({ n, sumD: n * 9_123_457n, sumD2, sumLlBase: n * 10_000_000n })!;
    expect((high - low) / 2).toBeCloseTo((1.959963984540054 * 1e-7) / Math.sqrt(999_997), 15);
  });

  test("takes two forecasts and a baseline that lost anything", () => {
    expect(skillInterval(sumsOf([]))).toBeNull();
    expect(skillInterval(sumsOf([[5, 7]]))).toBeNull();
    expect(skillInterval({ n: 2n, sumD: 0n, sumD2: 0n, sumLlBase: 0n })).toBeNull();
    const same = [5, 10] as const;
    expect(skillInterval(sumsOf([same, same]))).toEqual([0.5, 0.5]);
  });
});

describe("the bounds of a hit rate", () => {
  test("contain it whatever the voids would have been, and equal it if there are none", () => {
    fc.assert(
      fc.property(fc.nat(1000), fc.nat(1000), fc.nat(1000), fc.nat(1000), (hits, misses, voidHits, voidMisses) => {
        const [n, voids] = [hits + misses, voidHits + voidMisses];
        fc.pre(n + voids > 0);
        const [low, high] = rateBounds(hits, n, voids)!;
        const truth = (hits + voidHits) / (n + voids);
        expect(low).toBeLessThanOrEqual(truth);
        expect(high).toBeGreaterThanOrEqual(truth);
        expect(rateBounds(hits, n + 1, 0)).toEqual([hits / (n + 1), hits / (n + 1)]);
      }),
    );
  });
});
