import { describe, expect, it } from "vitest";
import { emptyDependence, lnDependence, watchDependence } from "../../../src/forecasts/readings/dependence.ts";
import { ALARM_FROM, emptyDrift, watchDrift } from "../../../src/forecasts/readings/drift.ts";
import { emptyEdgeTest, testEdge } from "../../../src/forecasts/readings/edge-test.ts";
import { chiSquaredBelow } from "../../../src/forecasts/readings/g-test.ts";
import { createModel } from "../../../src/forecasts/model/model.ts";
import { isAtLeast, lnOf } from "../../../src/forecasts/readings/product.ts";
import { milliNats, percentile } from "../../../src/forecasts/readings/volatility.ts";
import { colorOf, trueGames } from "../true-games.ts";

const GAMES = trueGames(50_000, 50_000);
const THRESHOLDS = [200, 1000];

/** Uniform numbers below 1 from a 64-bit linear congruential generator (Knuth's MMIX), from a seed. */
function uniform(seed: bigint): () => number {
  let x = seed;
  return () => {
    x = (x * 6364136223846793005n + 1442695040888963407n) % 2n ** 64n;
    return Number(x >> 11n) / 2 ** 53;
  };
}

/** Rounds of a house that keeps this edge, in hundredths. */
function fairRounds(count: number, edge: number, next: () => number): number[] {
  return Array.from({ length: count }, () => Math.max(100, Math.floor((100 * (1 - edge)) / (1 - next()))));
}

function testAll(games: readonly number[], edge: number) {
  const test = emptyEdgeTest();
  /** Rounds until the evidence first reached 20. */
  let at20: number | null = null;
  games.forEach((hundredths, index) => {
    testEdge(test, edge, hundredths);
    if (isAtLeast(test.most, { value: 20, scale: 0 })) at20 ??= index + 1;
  });
  return { most: test.most, at20 };
}

describe("the edge test on true bustabit games from the first on", () => {
  it("finds nothing against the true 1 %", () => {
    const { most, at20 } = testAll(GAMES, 0.01);
    expect(lnOf(most)).toBeCloseTo(0.19, 2);
    expect(at20).toBeNull();
  });

  // the prototype, which bet on 1.01 from the start, took 921 and 1,784
  it.each([
    [0.03, 933],
    [0.02, 1811],
  ])("reaches 20 against a declared edge of %d after %d rounds", (edge, round) => {
    expect(testAll(GAMES.slice(0, 3000), edge).at20).toBe(round);
  });

  it("is wrong no more often than stated, however often it is checked", () => {
    const next = uniform(1n);
    const wrong = Array.from({ length: 200 }, () => testAll(fairRounds(2000, 0.03, next), 0.03).at20);
    expect(wrong.filter((round) => round !== null).length).toBeLessThanOrEqual(10); // 5 % of 200
  });

  it("does not blame a house without instant crashes for having none", () => {
    const rounds = fairRounds(5000, 0.03, uniform(3n)).map((hundredths) => Math.max(101, hundredths));
    expect(testAll(rounds, 0.03).at20).toBeNull();
    expect(testAll(rounds, 0.08).at20).not.toBeNull();
  });
});

describe("the e-process on dependence", () => {
  const model = createModel({ thresholds: THRESHOLDS, edge: 0.01 });

  function most(colors: readonly number[]) {
    const dependence = emptyDependence(model);
    let greatest = -Infinity;
    let foundAt: number | null = null;
    colors.forEach((color, index) => {
      watchDependence(dependence, model, color);
      const now = lnDependence(dependence);
      if (now > greatest) greatest = now;
      if (foundAt === null && now >= Math.log(20)) foundAt = index + 1;
    });
    return { greatest, foundAt, weights: dependence.weights };
  }

  it("never passes 1 on true bustabit games", () => {
    expect(most(GAMES.map(colorOf)).greatest).toBeLessThanOrEqual(0);
  });

  it("finds a Markov chain and identifies it", () => {
    const rows = [
      [0.53, 0.38],
      [0.5, 0.4],
      [0.42, 0.44],
    ];
    const next = uniform(2n);
    let previous = 0;
    const colors = Array.from({ length: 30_000 }, () => {
      const [blue = 0, purple = 0] = rows[previous] ?? [];
      const u = next();
      return (previous = u < blue ? 0 : u < blue + purple ? 1 : 2);
    });
    const { foundAt, weights } = most(colors);
    expect(foundAt).not.toBeNull();
    expect(weights[1]).toBeGreaterThan(0.5);
  });

  it("finds a pity timer, whose pink becomes more probable the longer it is absent", () => {
    const next = uniform(5n);
    let gap = 0;
    const colors = Array.from({ length: 20_000 }, () => {
      const isPink = next() < Math.min(0.5, 0.04 + 0.01 * gap);
      gap = isPink ? 0 : gap + 1;
      return isPink ? 2 : next() < 0.56 ? 0 : 1;
    });
    const { foundAt, weights } = most(colors);
    expect(foundAt).not.toBeNull();
    expect(weights[2]).toBeGreaterThan(0.5);
  });
});

describe("the detectors of drift", () => {
  function alarmsOf(rounds: readonly number[], edge: number, from = 0) {
    const model = createModel({ thresholds: THRESHOLDS, edge });
    const drift = emptyDrift(3);
    let reach: number | null = null;
    let colors: number | null = null;
    rounds.forEach((hundredths, index) => {
      watchDrift(drift, model, { color: colorOf(hundredths), hundredths });
      if (index < from) return;
      if (drift.reachEvidence >= ALARM_FROM) reach ??= index - from;
      if (drift.colorEvidence >= ALARM_FROM) colors ??= index - from;
    });
    return { reach, colors };
  }

  it("raise no alarm on true bustabit games", () => {
    expect(alarmsOf(GAMES, 0.01)).toEqual({ reach: null, colors: null });
  });

  it("find an edge that goes from 3 to 8 %, the share above 1.10 long before the colors", () => {
    const next = uniform(7n);
    const rounds = [...fairRounds(20_000, 0.03, next), ...fairRounds(20_000, 0.08, next)];
    const { reach, colors } = alarmsOf(rounds, 0.03, 20_000);
    expect(reach).toBeLessThan(4000);
    expect(colors ?? Infinity).toBeGreaterThan(Number(reach));
  });

  it("find a pink that occurs in 6 instead of 9.7 % of rounds, though the share above 1.10 is unchanged", () => {
    const next = uniform(11n);
    const draw = (pink: number) => () => {
      const hundredths = Math.max(100, Math.floor(97 / (1 - next())));
      return hundredths >= 1000 && next() > pink / 0.097 ? 500 : hundredths;
    };
    const rounds = [...Array.from({ length: 20_000 }, draw(0.097)), ...Array.from({ length: 8000 }, draw(0.06))];
    const { reach, colors } = alarmsOf(rounds, 0.03, 20_000);
    expect(reach).toBeNull();
    expect(colors).toBeLessThan(8000);
  });
});

describe("textbook quantities", () => {
  // 95 % points as every table of the distribution has them
  it.each([3.841459, 5.991465, 7.814728, 9.487729, 11.0705, 12.59159, 14.06714])(
    "give 0.95 for the 95 %% point %d of the chi-squared distribution",
    (point) => {
      const degrees = [3.841459, 5.991465, 7.814728, 9.487729, 11.0705, 12.59159, 14.06714].indexOf(point) + 1;
      expect(chiSquaredBelow(point, degrees)).toBeCloseTo(0.95, 6);
    },
  );

  it("rank a value among others, half of the equal ones below it", () => {
    expect(percentile([4, 2, 4], 0)).toBe(0.2);
    expect(percentile([4, 2, 4], 1)).toBe(0.5);
  });
});

describe("logarithms that are remembered", () => {
  it("are so far from a rounding boundary that no two machines differ", () => {
    let nearest = 1;
    for (let hundredths = 100; hundredths <= 2_000_000; hundredths++) {
      const thousandths = Math.log(hundredths / 100) * 1000;
      nearest = Math.min(nearest, Math.abs(thousandths - Math.floor(thousandths) - 0.5));
    }
    // an error of the last bit is 2e-12 of a thousandth at most
    expect(nearest).toBeGreaterThan(1e-9);
    expect(milliNats(101)).toBe(10);
  });
});
