import { describe, expect, test } from "vitest";
import { hindsightOf, type OutcomeSums } from "../../../src/forecasts/accuracy/figures/hindsight.ts";
import { mergeTheorySums, theorySums } from "../../../src/forecasts/accuracy/figures/theory.ts";
import { scoreNextColor, scoreWindow } from "../../../src/forecasts/score/scoring.ts";

const ODDS = { thresholds: [200, 1000], edge: 0.01 };
const color = (k: number, n: number): OutcomeSums => ({ color: k, window: null, n: BigInt(n), sumLl: 0n, sumLl2: 0n });
const window = (horizon: number, isHit: boolean, n: number): OutcomeSums => ({
  color: null,
  window: { horizon, isHit },
  n: BigInt(n),
  sumLl: 0n,
  sumLl2: 0n,
});

describe("the declared odds", () => {
  test("are scored for the next color as a forecast that states them every time", () => {
    const p = [505_000, 396_000, 99_000];
    const one = scoreNextColor(p, p, 2);
    const sums = theorySums(ODDS, 0, [color(0, 7), color(2, 3)]);
    expect(sums).toMatchObject({ n: 10n, hits: 7n, sumP: 5_050_000n });
    expect(sums?.sumLl).toBe(3n * BigInt(one.ll) + 7n * BigInt(scoreNextColor(p, p, 0).ll));
    expect(sums?.sumBrier).toBe(3n * BigInt(one.brier) + 7n * BigInt(scoreNextColor(p, p, 0).brier));
  });

  test("are scored for a window as the chance of its color within its rounds", () => {
    const pink80 = 1 + 3 * 2 + 1;
    const p = Math.round((1 - (1 - 0.099) ** 16) * 1e6);
    const sums = theorySums(ODDS, pink80, [window(16, true, 5), window(16, false, 2)]);
    const [hit, miss] = [scoreWindow(p, p, true), scoreWindow(p, p, false)];
    expect(sums).toMatchObject({ n: 7n, hits: 5n, sumP: 7n * BigInt(p) });
    expect(sums?.sumLl).toBe(5n * BigInt(hit.ll) + 2n * BigInt(miss.ll));
  });

  test("never beat the best constant in hindsight", () => {
    const outcomes = [color(0, 505), color(1, 396), color(2, 99)];
    const { bestLl } = hindsightOf(outcomes);
    expect(Number(theorySums(ODDS, 0, outcomes)?.sumLl)).toBeGreaterThanOrEqual(Number(bestLl) - 1_000);
  });

  test("are absent if no edge is declared, and of rows together if one of them declares none", () => {
    expect(theorySums({ ...ODDS, edge: null }, 0, [color(0, 1)])).toBeNull();
    const one = theorySums(ODDS, 0, [color(0, 1)]);
    expect(mergeTheorySums([one, null])).toBeNull();
    expect(mergeTheorySums([one, one])?.n).toBe(2n);
  });
});
