import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hindsightOf, type OutcomeSums } from "../../../src/forecasts/accuracy/figures/hindsight.ts";

const window = (horizon: number, isHit: boolean, n: number): OutcomeSums => ({
  color: null,
  window: { horizon, isHit },
  n: BigInt(n),
  sumLl: 0n,
  sumLl2: 0n,
});

/** Log loss in nats of one chance per round. */
function lossAt(outcomes: readonly OutcomeSums[], chance: number): number {
  return outcomes.reduce((sum, { n, window: span }) => {
    const missed = (1 - chance) ** (span?.horizon ?? 0);
    return n === 0n ? sum : sum - Number(n) * Math.log(span?.isHit === true ? 1 - missed : missed);
  }, 0);
}

describe("the best constant in hindsight", () => {
  test("of one horizon is the share of hits", () => {
    const { bestLl } = hindsightOf([window(7, true, 30), window(7, false, 10)]);
    expect(Number(bestLl) / 1e6).toBeCloseTo(-(30 * Math.log(0.75) + 10 * Math.log(0.25)), 5);
  });

  test("of several horizons loses no more than any other chance per round", () => {
    const counts = fc.array(
      fc.record({ horizon: fc.integer({ min: 1, max: 60 }), hit: fc.nat(500), miss: fc.nat(500) }),
      {
        minLength: 1,
        maxLength: 5,
      },
    );
    fc.assert(
      fc.property(counts, fc.double({ min: 0.0001, max: 0.9, noNaN: true }), (rows, chance) => {
        const outcomes = rows.flatMap(({ horizon, hit, miss }) => [
          window(horizon, true, hit),
          window(horizon, false, miss),
        ]);
        expect(Number(hindsightOf(outcomes).bestLl) / 1e6).toBeLessThanOrEqual(lossAt(outcomes, chance) + 1e-5);
      }),
    );
  });

  test("of windows that all hit, or all missed, loses nothing", () => {
    expect(hindsightOf([window(5, true, 100)]).bestLl).toBe(0n);
    expect(Number(hindsightOf([window(5, false, 100)]).bestLl)).toBeLessThan(5);
    expect(hindsightOf([])).toEqual({ bestLl: 0n, bestD2: 0n });
  });

  test("is fitted table by table: two fair tables of different shares show no skill together", () => {
    const color = (k: number, n: bigint): OutcomeSums => ({ color: k, window: null, n, sumLl: 0n, sumLl2: 0n });
    const apart = [hindsightOf([color(0, 90n), color(1, 10n)]), hindsightOf([color(0, 10n), color(1, 90n)])];
    const pooled = hindsightOf([color(0, 100n), color(1, 100n)]);
    const together = apart.reduce((sum, { bestLl }) => sum + bestLl, 0n);
    expect(Number(together) / 1e6).toBeCloseTo(200 * -(0.9 * Math.log(0.9) + 0.1 * Math.log(0.1)), 4);
    expect(pooled.bestLl).toBeGreaterThan(together * 2n);
  });
});
