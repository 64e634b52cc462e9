import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nextColorPpm } from "../../../src/forecasts/model/ppm.ts";
import {
  betMicroNats,
  BETS_IN_TWENTIETHS,
  microNats,
  scoreNextColor,
  scoreWindow,
} from "../../../src/forecasts/score/scoring.ts";

/** A forecast of `colors` colors in ppm. */
const anyForecast = (colors: number) =>
  fc
    .array(fc.double({ min: 1e-6, max: 1, noNaN: true }), { minLength: colors, maxLength: colors })
    .map((parts) => nextColorPpm(parts.map((part) => part / parts.reduce((a, b) => a + b))));

/** A sum that cannot lose a digit. */
const exactSum = (values: readonly number[]) => values.reduce((sum, value) => sum + BigInt(value), 0n);

const anyCase = fc
  .integer({ min: 2, max: 8 })
  .chain((colors) => fc.tuple(anyForecast(colors), anyForecast(colors), fc.nat(colors - 1)));

describe("micro-nats", () => {
  // 999992173017 is what Python and Node both got when the unit was chosen.
  test("of all million probabilities add up to what another language gets", () => {
    let sum = 0;
    for (let pPpm = 1; pPpm <= 1_000_000; pPpm++) sum += microNats(pPpm);
    expect(sum).toBe(999_992_173_017);
  });

  test("of no probability that can be issued lie so near a rounding boundary that a last bit could matter", () => {
    let nearest = 1;
    for (let pPpm = 1; pPpm < 1_000_000; pPpm++) {
      const exact = -Math.log(pPpm / 1e6) * 1e6;
      nearest = Math.min(nearest, Math.abs(exact - Math.floor(exact) - 0.5));
    }
    expect(nearest).toBeGreaterThan(1e-6);
  });

  test("refuse what is no probability", () => {
    for (const wrong of [0, 1_000_001, 0.5, Number.NaN])
      expect(() => microNats(wrong)).toThrow("from 1 to 1000000 ppm");
  });
});

describe("the bets of the calibration e-value", () => {
  // computed independently in Python with 64-bit mantissas, for λ of −1/2, −1/4, −1/10, 1/10, 1/4 and 1/2
  test("add up over all probabilities to what another language gets", () => {
    const sums = [0, 0, 0, 0, 0, 0];
    for (let pPpm = 1; pPpm < 1_000_000; pPpm++) {
      const gains = betMicroNats(pPpm, true);
      for (let i = 0; i < 6; i++) sums[i]! += gains[i]!;
    }
    expect(sums).toEqual([
      -306_852_472_836, -136_953_638_896, -51_755_306_575, 48_411_930_045, 115_717_644_867, 216_395_121_442,
    ]);
  });

  test("gain on a miss what the contrary bets would gain on a hit of the rest", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999_999 }), (pPpm) => {
        expect(betMicroNats(pPpm, false)).toEqual(betMicroNats(1_000_000 - pPpm, true).toReversed());
      }),
    );
  });

  test("lie nowhere so near a rounding boundary that a last bit could matter", () => {
    let nearest = 1;
    for (let pPpm = 1; pPpm < 1_000_000; pPpm++) {
      for (const bet of BETS_IN_TWENTIETHS) {
        for (const surprise of [1_000_000 - pPpm, -pPpm]) {
          const exact = Math.log((20_000_000 + bet * surprise) / 20_000_000) * 1e6;
          nearest = Math.min(nearest, Math.abs(exact - Math.floor(exact) - 0.5));
        }
      }
    }
    // division and logarithm together lose less than 2.2e-10 micro-nats
    expect(nearest).toBeGreaterThan(4e-8);
  });

  test("are fair wherever the probability is true", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999_999 }), (pPpm) => {
        const [hit, miss] = [betMicroNats(pPpm, true), betMicroNats(pPpm, false)];
        BETS_IN_TWENTIETHS.forEach((_, i) => {
          const expected = (pPpm / 1e6) * Math.exp(hit[i]! / 1e6) + (1 - pPpm / 1e6) * Math.exp(miss[i]! / 1e6);
          expect(Math.abs(expected - 1)).toBeLessThan(1e-6);
        });
      }),
    );
  });

  test("refuse what is no probability", () => {
    for (const wrong of [0, 1_000_001, 0.5, Number.NaN])
      expect(() => betMicroNats(wrong, true)).toThrow("from 1 to 1000000 ppm");
  });
});

describe("a next_color forecast", () => {
  test("is scored in every measure, with its baseline", () => {
    // Brier .515² + .384² + .131² and RPS .515² + .131², computed manually
    expect(scoreNextColor([515_000, 384_000, 101_000], [505_000, 396_000, 99_000], 1)).toEqual({
      kind: "next_color",
      outcome: 1,
      hit: false,
      pPpm: 515_000,
      basePpm: 505_000,
      pq: 515_000 * 485_000,
      brier: 515_000 ** 2 + 616_000 ** 2 + 101_000 ** 2,
      brierBase: 505_000 ** 2 + 604_000 ** 2 + 99_000 ** 2,
      rps: 515_000 ** 2 + 101_000 ** 2,
      rpsBase: 505_000 ** 2 + 99_000 ** 2,
      ll: 957_113,
      llBase: 926_341,
      lnE: betMicroNats(515_000, false),
      pPpmByColor: [515_000, 384_000, 101_000],
      brierByColor: [515_000 ** 2, 616_000 ** 2, 101_000 ** 2],
      rpsByColor: [515_000 ** 2, 101_000 ** 2, 0],
    });
  });

  test("is a hit when its most probable color occurred, of equal ones the lower", () => {
    const base = [300_000, 300_000, 400_000];
    const hits = [0, 1, 2].map((outcome) => scoreNextColor([400_000, 400_000, 200_000], base, outcome).hit);
    expect(hits).toEqual([true, false, false]);
    // the baseline's share is of the same color, likeliest there or not
    expect(scoreNextColor([400_000, 400_000, 200_000], base, 0).basePpm).toBe(300_000);
  });

  test("has parts by color that add up to the whole, all exact integers", () => {
    fc.assert(
      fc.property(anyCase, ([p, base, outcome]) => {
        const score = scoreNextColor(p, base, outcome);
        expect(exactSum(score.brierByColor)).toBe(BigInt(score.brier));
        expect(exactSum(score.rpsByColor)).toBe(BigInt(score.rps));
        expect(score.rpsByColor.at(-1)).toBe(0);
        const again = p.reduce((sum, value, k) => sum + (BigInt(value) - (k === outcome ? 1_000_000n : 0n)) ** 2n, 0n);
        expect(BigInt(score.brier)).toBe(again);
      }),
    );
  });

  test("scores no better or worse than itself as baseline", () => {
    fc.assert(
      fc.property(anyCase, ([p, , outcome]) => {
        const score = scoreNextColor(p, p, outcome);
        expect([score.llBase - score.ll, score.brierBase - score.brier, score.rpsBase - score.rps]).toEqual([0, 0, 0]);
      }),
    );
  });

  test("cannot gain by saying anything but what it believes", () => {
    fc.assert(
      fc.property(anyCase, ([truth, other]) => {
        const expected = (forecast: number[], measure: "ll" | "brier" | "rps") =>
          truth.reduce((sum, share, k) => sum + (share / 1e6) * scoreNextColor(forecast, forecast, k)[measure], 0);
        // half a micro-nat of rounding in ll, a double's rounding in the squares
        expect(expected(truth, "ll")).toBeLessThanOrEqual(expected(other, "ll") + 1);
        expect(expected(truth, "brier")).toBeLessThanOrEqual(expected(other, "brier") + 1);
        expect(expected(truth, "rps")).toBeLessThanOrEqual(expected(other, "rps") + 1);
      }),
    );
  });

  test("is refused when forecast, baseline and outcome do not fit together", () => {
    expect(() => scoreNextColor([500_000, 500_000], [1_000_000], 0)).toThrow("same colors");
    expect(() => scoreNextColor([500_000, 500_000], [500_000, 500_000], 2)).toThrow("500000|500000 and 2");
  });
});

describe("a window", () => {
  test("that hit and one that missed are scored by the chance each was given", () => {
    const common = { kind: "window", pPpm: 811_376, basePpm: 810_000, pq: 811_376 * 188_624 };
    expect(scoreWindow(811_376, 810_000, true)).toEqual({
      ...common,
      hit: true,
      brier: 188_624 ** 2,
      brierBase: 190_000 ** 2,
      rps: 188_624 ** 2,
      rpsBase: 190_000 ** 2,
      ll: microNats(811_376),
      llBase: microNats(810_000),
      lnE: betMicroNats(811_376, true),
    });
    expect(scoreWindow(811_376, 810_000, false)).toEqual({
      ...common,
      hit: false,
      brier: 811_376 ** 2,
      brierBase: 810_000 ** 2,
      rps: 811_376 ** 2,
      rpsBase: 810_000 ** 2,
      ll: microNats(188_624),
      llBase: microNats(190_000),
      lnE: betMicroNats(811_376, false),
    });
  });

  test("is scored as a forecast of two colors would be, but for the Brier score that counts both", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999_999 }), fc.boolean(), (pPpm, hit) => {
        const window = scoreWindow(pPpm, 500_000, hit);
        const colors = scoreNextColor([1_000_000 - pPpm, pPpm], [500_000, 500_000], hit ? 1 : 0);
        expect([window.ll, window.llBase, window.rps, 2 * window.brier]).toEqual([
          colors.ll,
          colors.llBase,
          colors.rps,
          colors.brier,
        ]);
      }),
    );
  });
});
