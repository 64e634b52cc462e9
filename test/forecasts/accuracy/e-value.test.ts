import { describe, expect, test } from "vitest";
import { eValue, isOffTarget } from "../../../src/forecasts/accuracy/figures/e-value.ts";
import { betMicroNats, scoreWindow } from "../../../src/forecasts/score/scoring.ts";
import { emptySums } from "../../../src/forecasts/accuracy/figures/sums.ts";
import { bentStatements, generator } from "../statements.ts";
import { addScore } from "../plain-sums.ts";

/** A row of windows with these probabilities. */
const rowOf = (statements: readonly { pPpm: number; cameTrue: boolean }[]) => {
  const sums = emptySums();
  for (const { pPpm, cameTrue } of statements) addScore(sums, scoreWindow(pPpm, 500_000, cameTrue));
  return sums;
};

/** Five bets that won and lost nothing, and one that made this much. */
const alone = (lnE: number) => eValue([0n, 0n, 0n, 0n, 0n, BigInt(Math.round(lnE * 1e6))]);

describe("the calibration e-value", () => {
  test("of 20,000 statements is what another language gets", () => {
    // computed independently in Python
    const { sumLnE } = rowOf(bentStatements(20_000));
    expect(sumLnE).toEqual([-566352137n, -132573961n, -19990914n, -23137075n, -140549121n, -583260413n]);
    expect(eValue(sumLnE).lnE).toBeCloseTo(-21.74055603987824, 10);
  });

  test("finds forecasts that are always too low or too high by a tenth", () => {
    const next = generator();
    const low = rowOf(Array.from({ length: 1000 }, () => ({ pPpm: 500_000, cameTrue: next() < 0.6 })));
    const high = rowOf(Array.from({ length: 1000 }, () => ({ pPpm: 500_000, cameTrue: next() < 0.4 })));
    for (const { sumLnE } of [low, high]) {
      expect(eValue(sumLnE).e).toBeGreaterThan(1000);
      expect(isOffTarget(eValue(sumLnE), 50)).toBe(true);
    }
  });

  test("of true probabilities reaches 20 in fewer than one series of 20, however often one looks", () => {
    const next = generator();
    let alarms = 0;
    for (let series = 0; series < 400; series++) {
      const wealth = [0, 0, 0, 0, 0, 0];
      let alarmed = false;
      for (let i = 0; i < 300; i++) {
        const pPpm = 1 + Math.floor(next() * 999_999);
        betMicroNats(pPpm, next() * 1e6 < pPpm).forEach((gain, bet) => (wealth[bet]! += gain));
        alarmed ||= isOffTarget(eValue(wealth.map(BigInt)), 1);
      }
      if (alarmed) alarms += 1;
    }
    expect(alarms).toBeGreaterThan(0);
    expect(alarms / 400).toBeLessThanOrEqual(0.05);
  });

  test("counts from 20 on, and overflows into nothing worse than the greatest number", () => {
    expect(alone(Math.log(6 * 19.9 - 5)).e).toBeCloseTo(19.9, 4);
    expect([isOffTarget(alone(Math.log(6 * 19.9 - 5)), 1), isOffTarget(alone(Math.log(6 * 20.1 - 5)), 1)]).toEqual([
      false,
      true,
    ]);
    expect(alone(10_000).e).toBe(Number.MAX_VALUE);
    expect(alone(10_000).lnE).toBeCloseTo(10_000 - Math.log(6), 9);
    expect(eValue(Array.from({ length: 6 }, () => -2_000_000_000n))).toEqual({ e: 0, lnE: -2000 });
  });
});
