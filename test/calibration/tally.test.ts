import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scoreNextColor, scoreWindow, type Score } from "../../src/forecasts/score/scoring.ts";
import { sumsToJson } from "../../src/forecasts/accuracy/figures/sums-json.ts";
import { emptySums, type Sums } from "../../src/forecasts/accuracy/figures/sums.ts";
import {
  createTally,
  sumsOfTally,
  tallyForecast,
  tallyGap,
  tallyNextColor,
  tallyWait,
  tallyWindow,
} from "../../src/calibration/backtest/tally.ts";
import { addForecast, addScore, addVoid, addWait } from "../forecasts/plain-sums.ts";

type Window = [pPpm: number, basePpm: number, hit: boolean];
type NextColor = [pPpm: number[], basePpm: number[], outcome: number];

const ppm = fc.integer({ min: 1, max: 999_999 });
const window: fc.Arbitrary<Window> = fc.tuple(ppm, ppm, fc.boolean());
const threeColors = fc
  .tuple(fc.integer({ min: 1, max: 499_999 }), fc.integer({ min: 1, max: 499_999 }))
  .map(([a, b]) => [a, b, 1_000_000 - a - b]);
const nextColor: fc.Arbitrary<NextColor> = fc.tuple(threeColors, threeColors, fc.integer({ min: 0, max: 2 }));

/** The sums that `addScore` and its like make. */
function summed(scores: readonly Score[]): Sums {
  const sums = emptySums();
  for (const score of scores) {
    addForecast(sums);
    addScore(sums, score);
  }
  return sums;
}

function talliedWindows(windows: readonly Window[]): Sums {
  const tally = createTally(1);
  for (const [p, base, hit] of windows) {
    tallyForecast(tally);
    tallyWindow(tally, p, base, hit);
  }
  return sumsOfTally(tally);
}

describe("a tally gives the very sums of scoring and addScore", () => {
  test("for windows and for next colors of any p", () => {
    fc.assert(
      fc.property(fc.array(window, { maxLength: 50 }), fc.array(nextColor, { maxLength: 50 }), (windows, colors) => {
        expect(sumsToJson(talliedWindows(windows))).toEqual(
          sumsToJson(summed(windows.map(([p, base, hit]) => scoreWindow(p, base, hit)))),
        );
        const tally = createTally(3);
        for (const [p, base, outcome] of colors) {
          tallyForecast(tally);
          tallyNextColor(tally, p, base, outcome);
        }
        expect(sumsToJson(sumsOfTally(tally))).toEqual(
          sumsToJson(summed(colors.map(([p, base, outcome]) => scoreNextColor(p, base, outcome)))),
        );
      }),
    );
  });

  test("past what a double can hold", () => {
    const worst = scoreWindow(1, 999_999, true);
    const windows = Array.from({ length: 20_000 }, (): Window => [1, 999_999, true]);
    expect(worst.brier * windows.length).toBeGreaterThan(Number.MAX_SAFE_INTEGER * 2);
    expect(sumsToJson(talliedWindows(windows))).toEqual(sumsToJson(summed(windows.map(() => worst))));
  });

  test("with eight colors, voids and waits, and more than once", () => {
    const p = [999_993, 1, 1, 1, 1, 1, 1, 1];
    const base = p.toReversed();
    const scores = Array.from({ length: 3000 }, () => scoreNextColor(p, base, 7));
    const expected = summed(scores);
    const tally = createTally(8);
    for (let i = 0; i < scores.length; i++) {
      tallyForecast(tally);
      tallyNextColor(tally, p, base, 7);
    }
    const mass = [1, 2, 3, 4, 5, 6, 7, 8, 9, 999_955];
    tallyWait(tally, mass);
    addWait(expected, mass);
    tallyGap(tally);
    addVoid(expected, "gap");
    expect(sumsToJson(sumsOfTally(tally))).toEqual(sumsToJson(expected));
    expect(sumsToJson(sumsOfTally(tally))).toEqual(sumsToJson(expected));
  });

  test("and refuses an unknown color", () => {
    expect(() => tallyNextColor(createTally(2), [500_000, 500_000], [500_000, 500_000], 2)).toThrow(
      "from 0 to 1, got 2",
    );
  });
});
