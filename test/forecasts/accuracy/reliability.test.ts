import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nextColorPpm } from "../../../src/forecasts/model/ppm.ts";
import {
  calibrationError,
  calibrationErrorFloor,
  corp,
  reliabilityBins,
} from "../../../src/forecasts/accuracy/figures/reliability.ts";
import { scoreNextColor, scoreWindow } from "../../../src/forecasts/score/scoring.ts";
import { figuresOf } from "../../../src/forecasts/accuracy/figures/figures.ts";
import { emptySums, mergeSums } from "../../../src/forecasts/accuracy/figures/sums.ts";
import { bentStatements, generator, type Statement } from "../statements.ts";
import { addScore } from "../plain-sums.ts";

/** The histogram that an accuracy row keeps of such statements. */
const histogramOf = (statements: readonly Statement[]) => {
  const sums = emptySums();
  for (const { pPpm, cameTrue } of statements) addScore(sums, scoreWindow(pPpm, 500_000, cameTrue));
  return sums.histograms[0] ?? [];
};

const anyStatements = fc.array(fc.record({ pPpm: fc.integer({ min: 1, max: 999_999 }), cameTrue: fc.boolean() }), {
  minLength: 1,
  maxLength: 60,
});

/** Statements of which each fine bin holds one p, so that nothing is lost in it. */
const anyRoundStatements = fc.array(
  fc.record({ pPpm: fc.integer({ min: 1, max: 99 }).map((percent) => percent * 10_000), cameTrue: fc.boolean() }),
  { minLength: 1, maxLength: 60 },
);

const brierOf = (statements: readonly Statement[]) =>
  statements.reduce((sum, { pPpm, cameTrue }) => sum + (pPpm / 1e6 - (cameTrue ? 1 : 0)) ** 2, 0) / statements.length;

/** The same forecast n times, of which `hits` came true. */
const forecasts = (pPpm: number, n: number, hits: number) =>
  Array.from({ length: n }, (_, i) => ({ pPpm, cameTrue: i < hits }));

const bent = bentStatements(20_000);

describe("reliability bins", () => {
  test("of 20,000 statements are what another language gets", () => {
    // computed independently in Python: bin, n, sum of p in ppm, hits
    const expected = [
      [0, 2024, 101401713, 365],
      [1, 2023, 303678646, 491],
      [2, 2097, 525124949, 665],
      [3, 2001, 700298183, 782],
      [4, 1919, 866852594, 911],
      [5, 2009, 1104983545, 1082],
      [6, 2019, 1311660585, 1243],
      [7, 1996, 1497256281, 1332],
      [8, 1953, 1659901464, 1460],
      [9, 1959, 1860533472, 1585],
    ] as const;
    expect(reliabilityBins([histogramOf(bent)])).toEqual(
      expected.map(([bin, n, sumP, hits]) => ({
        p_from: Number(`0.${bin}`),
        p_to: bin === 9 ? 1 : Number(`0.${bin + 1}`),
        n,
        mean_p: sumP / (n * 1e6),
        hits,
      })),
    );
  });

  test("leave out probabilities that were never stated", () => {
    expect(reliabilityBins([])).toEqual([]);
    expect(reliabilityBins([histogramOf([{ pPpm: 300_000, cameTrue: false }])])).toEqual([
      { p_from: 0.3, p_to: 0.4, n: 1, mean_p: 0.3, hits: 0 },
    ]);
  });

  test("count every statement once, each between the ends of its bin", () => {
    fc.assert(
      fc.property(anyStatements, (statements) => {
        const bins = reliabilityBins([histogramOf(statements)]);
        expect(bins.reduce((sum, { n }) => sum + n, 0)).toBe(statements.length);
        expect(bins.reduce((sum, { hits }) => sum + hits, 0)).toBe(statements.filter((s) => s.cameTrue).length);
        for (const { p_from, p_to, mean_p, n } of bins) {
          expect(mean_p).toBeGreaterThanOrEqual(p_from);
          expect(mean_p).toBeLessThan(p_to);
          expect(n).toBe(
            statements.filter(({ pPpm }) => pPpm >= Math.round(p_from * 1e6) && pPpm < Math.round(p_to * 1e6)).length,
          );
        }
      }),
    );
  });

  test("of a next_color row hold each color of each forecast, and one hit a forecast", () => {
    const anyForecast = fc
      .array(fc.double({ min: 1e-3, max: 1, noNaN: true }), { minLength: 3, maxLength: 3 })
      .map((parts) => nextColorPpm(parts.map((part) => part / parts.reduce((a, b) => a + b))));
    fc.assert(
      fc.property(fc.array(fc.tuple(anyForecast, fc.nat(2)), { minLength: 1, maxLength: 30 }), (rounds) => {
        const sums = emptySums();
        for (const [p, outcome] of rounds) addScore(sums, scoreNextColor(p, p, outcome));
        const bins = reliabilityBins(sums.histograms);
        expect(bins.reduce((sum, { n }) => sum + n, 0)).toBe(3 * rounds.length);
        expect(bins.reduce((sum, { hits }) => sum + hits, 0)).toBe(rounds.length);
        const stated = bins.reduce((sum, { n, mean_p }) => sum + n * mean_p, 0);
        expect(stated).toBeCloseTo(rounds.length, 9);
      }),
    );
  });
});

describe("the calibration error", () => {
  test("of 20,000 statements is what another language gets", () => {
    // computed independently in Python from the single statements
    expect(calibrationError([histogramOf(bent)])).toBeCloseTo(0.0724489631, 12);
  });

  test("is what a reader computes from the bins", () => {
    fc.assert(
      fc.property(anyStatements, (statements) => {
        const histograms = [histogramOf(statements)];
        const bins = reliabilityBins(histograms);
        const error = calibrationError(histograms);
        const byHand = bins.reduce((sum, { n, mean_p, hits }) => sum + Math.abs(hits - n * mean_p), 0);
        expect(error! * statements.length).toBeCloseTo(byHand, 10);
      }),
    );
  });

  test("has a floor that is exact but for 0.05 %, and never too low", () => {
    // computed independently in Python from p(1 − p) of every single statement
    const floor = calibrationErrorFloor([[histogramOf(bent)]])!;
    expect(floor / 0.007055968107813132).toBeGreaterThanOrEqual(1);
    expect(floor / 0.007055968107813132).toBeLessThan(1.0005);
    fc.assert(
      fc.property(anyStatements, (statements) => {
        const variances = new Map<number, number>();
        for (const { pPpm } of statements) {
          const bin = Math.floor(pPpm / 100_000);
          variances.set(bin, (variances.get(bin) ?? 0) + (pPpm / 1e6) * (1 - pPpm / 1e6));
        }
        const exact = [...variances.values()].reduce((sum, v) => sum + Math.sqrt((2 / Math.PI) * v), 0);
        const stated = calibrationErrorFloor([[histogramOf(statements)]]);
        expect((stated! * statements.length) / exact).toBeGreaterThan(1 - 1e-12);
        expect((stated! * statements.length) / exact).toBeLessThan(1.0005);
      }),
    );
  });

  test("of nothing is null, and so is its floor", () => {
    expect([calibrationError([]), calibrationErrorFloor([[], [[]]])]).toEqual([null, null]);
  });

  test("of perfect forecasts is its floor on average", () => {
    const next = generator();
    const runs = 150;
    let [errors, floors] = [0, 0];
    for (let run = 0; run < runs; run++) {
      const perfect = Array.from({ length: 500 }, () => {
        const pPpm = 1 + Math.floor(next() * 999_999);
        return { pPpm, cameTrue: next() * 1e6 < pPpm };
      });
      errors += calibrationError([histogramOf(perfect)])! / runs;
      floors += calibrationErrorFloor([[histogramOf(perfect)]])! / runs;
    }
    expect(errors / floors).toBeGreaterThan(0.95);
    expect(errors / floors).toBeLessThan(1.05);
    expect(floors).toBeCloseTo(0.045, 2);
  });
});

test.each([
  [
    "other bands",
    [
      [450_000, 550_000],
      [550_000, 450_000],
      [480_000, 520_000],
    ],
  ],
  ["other numbers of colors", [[600_000, 400_000], Array.from({ length: 8 }, () => 125_000)]],
  [
    "the same bands",
    [
      [515_000, 388_000, 97_000],
      [515_000, 388_000, 97_000],
    ],
  ],
])("a row of tables with %s has the error of perfect forecasts as its floor", (_, shares) => {
  const next = generator();
  const outcomeOf = (p: readonly number[]) => {
    let left = next() * 1e6;
    return Math.max(
      0,
      p.findIndex((share) => (left -= share) < 0),
    );
  };
  const runs = 200;
  let [errors, floors] = [0, 0];
  for (let run = 0; run < runs; run++) {
    const tables = shares.map((p) => {
      const sums = emptySums();
      for (let round = 0; round < 300; round++) addScore(sums, scoreNextColor(p, p, outcomeOf(p)));
      return sums;
    });
    const { calibration_error: error, calibration_error_floor: floor } = figuresOf("next_color", mergeSums(tables));
    errors += error! / runs;
    floors += floor! / runs;
  }
  expect(errors / floors).toBeGreaterThan(0.9);
  expect(errors / floors).toBeLessThan(1.1);
});

describe("CORP", () => {
  // computed independently in Python: scipy's isotonic regression of the same histogram
  test("of 20,000 statements is what another implementation gets", () => {
    const { mcb, dsc, unc, curve } = corp(histogramOf(bent))!;
    expect(mcb).toBeCloseTo(0.0076807041391982744, 12);
    expect(dsc).toBeCloseTo(0.04255393363134222, 12);
    expect(unc).toBeCloseTo(0.24998235999999996, 12);
    expect(curve).toHaveLength(43);
    expect(curve[0]!.rate).toBeCloseTo(0.1282051282051282, 12);
    expect(curve.at(-1)!.rate).toBeCloseTo(0.836104513064133, 12);
  });

  test("loses little to the histogram: the single statements give nearly the same", () => {
    // scipy's isotonic regression of the 20,000 statements themselves
    const { mcb, dsc } = corp(histogramOf(bent))!;
    expect(Math.abs(mcb - 0.007745541282018709)).toBeLessThan(1e-4);
    expect(Math.abs(dsc - 0.042617772801174736)).toBeLessThan(1e-4);
  });

  test("takes the Brier score apart without a rest, no part below zero", () => {
    fc.assert(
      fc.property(anyRoundStatements, (statements) => {
        const { mcb, dsc, unc } = corp(histogramOf(statements))!;
        expect(mcb - dsc + unc).toBeCloseTo(brierOf(statements), 12);
        expect(mcb).toBeGreaterThan(-1e-15);
        expect(dsc).toBeGreaterThanOrEqual(0);
        expect(dsc).toBeLessThanOrEqual(unc + 1e-15);
      }),
    );
  });

  test("has a curve that rises at every step and no monotone one beats", () => {
    fc.assert(
      fc.property(
        anyRoundStatements,
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 99 }),
        (s, any) => {
          const { mcb, curve } = corp(histogramOf(s))!;
          for (let i = 1; i < curve.length; i++) {
            expect(curve[i]!.rate).toBeGreaterThan(curve[i - 1]!.rate);
            expect(curve[i]!.p_from).toBeGreaterThan(curve[i - 1]!.p_to);
          }
          const rising = any.toSorted((a, b) => a - b);
          const rival = s.map(({ pPpm, cameTrue }) => (rising[pPpm / 10_000 - 1]! - (cameTrue ? 1 : 0)) ** 2);
          const best = brierOf(s) - mcb;
          expect(best).toBeLessThanOrEqual(rival.reduce((a, b) => a + b) / s.length + 1e-12);
        },
      ),
    );
  });

  test("finds nothing to recalibrate in rates that are as stated, and no skill in one rate for all", () => {
    const perfect = corp(histogramOf([...forecasts(200_000, 10, 2), ...forecasts(700_000, 10, 7)]))!;
    expect(perfect.mcb).toBeCloseTo(0, 15);
    expect(perfect.dsc).toBeCloseTo(0.0625, 12);
    expect(perfect.curve.map(({ n, rate }) => [n, rate])).toEqual([
      [10, 0.2],
      [10, 0.7],
    ]);
    // .3 and .2 came alike, .4 never: one step of four in twelve
    const pooled = [
      ...forecasts(200_000, 4, 2),
      ...forecasts(300_000, 4, 2),
      ...forecasts(400_000, 4, 0),
      ...forecasts(900_000, 2, 2),
    ];
    expect(corp(histogramOf(pooled))!.curve).toEqual([
      { p_from: 0.2, p_to: 0.4, n: 12, rate: 1 / 3 },
      { p_from: 0.9, p_to: 0.9, n: 2, rate: 1 },
    ]);
    // equal rates are one step, and the wrong way round there is nothing to discriminate
    expect(corp(histogramOf([...forecasts(200_000, 10, 7), ...forecasts(700_000, 10, 7)]))!.curve).toHaveLength(1);
    expect(corp(histogramOf([...forecasts(200_000, 10, 7), ...forecasts(700_000, 10, 2)]))!.dsc).toBe(0);
    expect(corp([])).toBeNull();
  });
});

test("figures of merged rows are those of the whole", () => {
  const rows = [bent.slice(0, 7_000), bent.slice(7_000, 7_003), bent.slice(7_003)].map((part) => {
    const sums = emptySums();
    for (const { pPpm, cameTrue } of part) addScore(sums, scoreWindow(pPpm, 500_000, cameTrue));
    return sums;
  });
  const merged = mergeSums([rows[2]!, rows[0]!, rows[1]!]).histograms;
  const whole = [histogramOf(bent)];
  expect(corp(merged[0]!)).toEqual(corp(whole[0]!));
  expect(reliabilityBins(merged)).toEqual(reliabilityBins(whole));
  expect(calibrationError(merged)).toBe(calibrationError(whole));
});
