import { describe, expect, test } from "vitest";
import { figuresOf, poolSums } from "../../../src/forecasts/accuracy/figures/figures.ts";
import { hindsightOf } from "../../../src/forecasts/accuracy/figures/hindsight.ts";
import { scoreNextColor, scoreWindow } from "../../../src/forecasts/score/scoring.ts";
import { emptySums, type Sums } from "../../../src/forecasts/accuracy/figures/sums.ts";
import { addFacts, type HourDeltas } from "../../../src/forecasts/accuracy/add-facts.ts";
import { featureSums, lateRoundsOf, withLateRounds } from "../../../src/forecasts/accuracy/published.ts";
import { addPending, addScore, addVoid } from "../plain-sums.ts";
import { type Event, makeLateHistory } from "./histories.ts";

const WITHHELD = {
  withheld: "more than 5 % of the rounds are void or late",
  interval_95: null,
  z: null,
  e_value: null,
  skill: null,
  skill_interval_95: null,
};

const SHOWN = {
  withheld: null,
  interval_95: expect.any(Array),
  z: expect.any(Number),
  e_value: expect.any(Number),
  skill: expect.any(Number),
  skill_interval_95: expect.any(Array),
};

/** The sums that are published of the next color and of `window:blue:50` after these events. */
function publishedOf(events: readonly Event[]): { nextColor: Sums; window: Sums } {
  const rounds = events.flatMap((event) => (event.kind === "round" ? [event] : []));
  const deltas: HourDeltas = new Map();
  addFacts(deltas, {
    sets: rounds.flatMap(({ set }) => set ?? []),
    scores: rounds.flatMap(({ scores }) => scores ?? []),
    revisions: [],
    rounds: rounds.map(({ round }) => round),
    earlierSets: [],
  });
  const vectors = [0, 1].map((feature) => deltas.get(`0 ${feature} k7@1`)!.sums);
  const [nextColor, window] = vectors.map((vector, feature) => featureSums(feature, vector));
  return { nextColor: nextColor!.sums, window: withLateRounds(window!, lateRoundsOf(vectors[0]!)).sums };
}

const micro = (nats: number) => BigInt(Math.round(nats * 1e6));

describe("the figures of an accuracy row", () => {
  test("of nothing are null, not zero", () => {
    expect(figuresOf("next_color", emptySums())).toEqual({
      sample_size: 0,
      hits: 0,
      hit_rate: null,
      interval_95: null,
      expected_rate: null,
      baseline_rate: null,
      coverage: null,
      not_issued: 0,
      late_rounds: 0,
      voids: { gap: 0, late: 0, conflict: 0, impossible: 0, operator: 0 },
      rate_bounds: null,
      withheld: null,
      pending: 0,
      sealed: null,
      z: null,
      e_value: null,
      log_loss: null,
      baseline_log_loss: null,
      brier: null,
      baseline_brier: null,
      rps: null,
      baseline_rps: null,
      skill: null,
      skill_interval_95: null,
      calibration_error: null,
      calibration_error_floor: null,
      reliability: [],
    });
  });

  test("of four next_color forecasts are what a calculator gives", () => {
    const sums = emptySums();
    const p = [515_000, 384_000, 101_000];
    const base = [505_000, 396_000, 99_000];
    for (const outcome of [0, 0, 1, 2]) addScore(sums, scoreNextColor(p, base, outcome));
    addPending(sums);
    sums.receivedRounds = 40n;
    sums.notIssued = 3n;
    const figures = figuresOf("next_color", sums);
    expect(figures).toMatchObject({
      sample_size: 4,
      hits: 2,
      hit_rate: 0.5,
      expected_rate: 0.515,
      baseline_rate: 0.505,
      coverage: 0.925,
      not_issued: 3,
      pending: 1,
    });
    expect(figures.z).toBeCloseTo((2 - 4 * 0.515) / Math.sqrt(4 * 0.515 * 0.485), 12);
    const logLoss = -(2 * Math.log(0.515) + Math.log(0.384) + Math.log(0.101)) / 4;
    const baseLogLoss = -(2 * Math.log(0.505) + Math.log(0.396) + Math.log(0.099)) / 4;
    expect(figures.log_loss).toBeCloseTo(logLoss, 6);
    expect(figures.baseline_log_loss).toBeCloseTo(baseLogLoss, 6);
    // the best constant is the shares that came: a half and two quarters
    expect(figures.skill).toBeCloseTo(1 - logLoss / ((Math.log(2) * 2 + Math.log(4) * 2) / 4), 6);
    expect(figures.brier).toBeCloseTo(
      (2 * (0.485 ** 2 + 0.384 ** 2 + 0.101 ** 2) +
        0.515 ** 2 +
        0.616 ** 2 +
        0.101 ** 2 +
        0.515 ** 2 +
        0.384 ** 2 +
        0.899 ** 2) /
        4,
      12,
    );
    expect(figures.rps).toBeCloseTo(
      (2 * (0.485 ** 2 + 0.101 ** 2) + 0.515 ** 2 + 0.101 ** 2 + 0.515 ** 2 + 0.899 ** 2) / 4,
      12,
    );
    expect(figures.interval_95![0]).toBeLessThan(0.5);
    expect(figures.interval_95![1]).toBeGreaterThan(0.5);
  });

  test("say how sure they are", () => {
    const sums = emptySums();
    const p = [515_000, 384_000, 101_000];
    const base = [505_000, 396_000, 99_000];
    for (const outcome of [0, 0, 1, 2]) addScore(sums, scoreNextColor(p, base, outcome));
    const [hit, miss, rare] = [0.515, 0.384, 0.101].map((share) => -Math.log(share));
    const outcomes = [
      { color: 0, window: null, n: 2n, sumLl: micro(2 * hit!), sumLl2: micro(2e6 * hit! ** 2) },
      { color: 1, window: null, n: 1n, sumLl: micro(miss!), sumLl2: micro(1e6 * miss! ** 2) },
      { color: 2, window: null, n: 1n, sumLl: micro(rare!), sumLl2: micro(1e6 * rare! ** 2) },
    ];
    const figures = figuresOf("next_color", { ...sums, ...hindsightOf(outcomes) });
    const gains = [Math.log(2) - hit!, Math.log(2) - hit!, Math.log(4) - miss!, Math.log(4) - rare!];
    const mean = (hit! * -2 - miss! - rare! + 6 * Math.log(2)) / 4;
    const se = Math.sqrt(gains.map((gain) => (-gain * -1 - mean) ** 2).reduce((a, b) => a + b) / 3 / 4);
    const best = (6 * Math.log(2)) / 4;
    expect(figures.skill).toBeCloseTo(mean / best, 5);
    expect(figures.skill_interval_95![0]).toBeCloseTo((mean - 1.959964 * se) / best, 4);
    expect(figures.skill_interval_95![1]).toBeCloseTo((mean + 1.959964 * se) / best, 4);
    const e = [-0.5, -0.25, -0.1, 0.1, 0.25, 0.5].map((bet) => (1 + bet * 0.485) ** 2 * (1 - bet * 0.515) ** 2);
    expect(figures.e_value).toBeCloseTo(e.reduce((a, b) => a + b) / 6, 5);
    // twelve statements: blue at .515 came twice in four, purple at .384 and pink at .101 once each
    expect(figures.reliability).toEqual([
      { p_from: 0.1, p_to: 0.2, n: 4, mean_p: 0.101, hits: 1 },
      { p_from: 0.3, p_to: 0.4, n: 4, mean_p: 0.384, hits: 1 },
      { p_from: 0.5, p_to: 0.6, n: 4, mean_p: 0.515, hits: 2 },
    ]);
    expect(figures.calibration_error).toBeCloseTo((4 * (0.149 + 0.134 + 0.015)) / 12, 12);
    const variances = [0.101 * 0.899, 0.384 * 0.616, 0.515 * 0.485];
    expect(figures.calibration_error_floor).toBeCloseTo(
      variances.reduce((sum, variance) => sum + Math.sqrt((2 / Math.PI) * 4 * variance), 0) / 12,
      12,
    );
  });

  test("of more than five percent voids are bounds and counts only", () => {
    const sums = emptySums();
    for (let i = 0; i < 95; i++) addScore(sums, scoreWindow(500_000, 500_000, i % 2 === 0));
    for (const kind of ["gap", "late", "conflict", "impossible", "operator"] as const) addVoid(sums, kind);
    expect(figuresOf("window:pink:50", sums)).toMatchObject({ withheld: null, rate_bounds: [0.48, 0.53] });
    addVoid(sums, "late");
    expect(figuresOf("window:pink:50", sums)).toMatchObject({
      sample_size: 95,
      hits: 48,
      voids: { gap: 1, late: 2, conflict: 1, impossible: 1, operator: 1 },
      rate_bounds: [48 / 101, 54 / 101],
      ...WITHHELD,
    });
  });

  // 95 settled forecasts of the next color, and 47 windows
  test.each([
    { late: 5, voidWindows: 0, withheld: [false, false] },
    { late: 6, voidWindows: 0, withheld: [true, true] },
    { late: 3, voidWindows: 0, withheld: [false, false] },
    { late: 3, voidWindows: 1, withheld: [false, true] },
    { late: 0, voidWindows: 2, withheld: [false, false] },
    { late: 0, voidWindows: 3, withheld: [false, true] },
  ])(
    "of $late late rounds to 95 on time and $voidWindows void windows of 47 are bounds and counts only: $withheld",
    ({ withheld, ...options }) => {
      const { nextColor, window } = publishedOf(makeLateHistory({ onTime: 96, hour: 0, ...options }));
      const shown = [figuresOf("next_color", nextColor), figuresOf("window:blue:50", window)];
      expect(shown.map(({ sample_size: n }) => n)).toEqual([95, 47 - options.voidWindows]);
      expect(shown).toMatchObject(withheld.map((isWithheld) => (isWithheld ? WITHHELD : SHOWN)));
      expect(shown.map(({ late_rounds }) => late_rounds)).toEqual([options.late, null]);
    },
  );

  test("of a house's windows compare the late rounds of all its tables with all their rounds", () => {
    const windowOf = (late: number) => publishedOf(makeLateHistory({ onTime: 300, late, hour: 0 })).window;
    const [many, few, none] = [windowOf(100), windowOf(10), windowOf(0)];
    const isWithheld = (...windows: Sums[]) => figuresOf("window:blue:50", poolSums(windows)).withheld !== null;
    expect([isWithheld(many), isWithheld(few), isWithheld(none)]).toEqual([true, false, false]);
    expect(isWithheld(many, none)).toBe(true);
    // 100 late rounds to 2,093 are 4.6 %, but a row that is withheld is lost as a whole
    expect(isWithheld(many, ...Array.from({ length: 6 }, () => none))).toBe(true);
    expect(isWithheld(many, ...Array.from({ length: 25 }, () => none))).toBe(true);
    expect(isWithheld(many, ...Array.from({ length: 26 }, () => none))).toBe(false);
  });

  test("stay finite, so that JSON can carry them, however wrong the forecasts were", () => {
    const sums = emptySums();
    sums.n = 1n;
    sums.sumLnE = [0n, 0n, 0n, 0n, 0n, 1_000_000_000n];
    expect(JSON.stringify(figuresOf("window:pink:80", sums).e_value)).toBe("1.7976931348623157e+308");
  });

  test("have as sealed a share of the settled forecasts, however many are pending", () => {
    const sums = { ...emptySums(), forecasts: 100n, n: 97n, voidGap: 1n, sealed: 49n };
    expect([2n, 3n, 100n, 125n].map((pending) => figuresOf("next_color", { ...sums, pending }).sealed)).toEqual([
      0.5, 0.5, 0.5, 0.5,
    ]);
  });

  test("of windows cover what was issued of what was due", () => {
    const sums = emptySums();
    addScore(sums, scoreWindow(811_376, 810_000, true));
    sums.forecasts = 3n;
    sums.notIssued = 1n;
    const figures = figuresOf("window:pink:80", sums);
    expect([figures.coverage, figures.not_issued]).toEqual([0.75, 1]);
    expect([figures.hit_rate, figures.expected_rate, figures.baseline_rate]).toEqual([1, 0.811376, 0.81]);
    expect(figures.brier).toBeCloseTo(0.188624 ** 2, 15);
  });

  test("show no skill for the very shares that occurred", () => {
    const sums = emptySums();
    for (const outcome of [0, 1, 0, 2])
      addScore(sums, scoreNextColor([500_000, 250_000, 250_000], [515_000, 384_000, 101_000], outcome));
    expect(figuresOf("next_color", sums).skill).toBeCloseTo(0, 6);
  });
});
