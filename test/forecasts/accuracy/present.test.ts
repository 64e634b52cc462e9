import { describe, expect, test } from "vitest";
import { emptyReferenceSums } from "../../../src/forecasts/accuracy/figures/reference-sums.ts";
import { emptyReferences } from "../../../src/forecasts/accuracy/figures/references.ts";
import type { PublishedForecast } from "../../../src/forecasts/published-forecast.ts";
import {
  forecastState,
  mergePeriods,
  showAccuracy,
  showNextColor,
  showWindows,
} from "../../../src/forecasts/accuracy/present.ts";
import { scoreNextColor } from "../../../src/forecasts/score/scoring.ts";
import { emptySums, type Sums } from "../../../src/forecasts/accuracy/figures/sums.ts";
import { verdictOf } from "../../../src/forecasts/accuracy/figures/verdict.ts";
import { addForecast, addScore, scoreReferences } from "../plain-sums.ts";

const published: PublishedForecast = {
  cutoffSeq: 12,
  nextColor: {
    forecast_id: "f3-7",
    issued_at: "2026-11-21T04:00:12.1234560Z",
    after_round_id: "8812345",
    target_round_id: "8812346",
    model: "k7@1",
    p_ppm: [
      ["violet", 505_001],
      ["red", 395_999],
      ["a", 99_000],
    ],
    base_ppm: [
      ["violet", 500_000],
      ["red", 400_000],
      ["a", 100_000],
    ],
    hash: "ab".repeat(32),
  },
  windows: [
    {
      feature: "window:red:80",
      color: "red",
      target: 80,
      forecast_id: "f3-5",
      issued_at: "2026-11-21T04:00:02.1234560Z",
      after_round_id: "8812343",
      model: "k7@1",
      rounds: 4,
      endOrdinal: 14,
      p_ppm: 866_909,
      base_ppm: 870_400,
      now: { rounds_left: 2, p_ppm: 634_800 },
      hash: "cd".repeat(32),
    },
  ],
};
const NOW = 1_000_000;
const facts = { paused: false, published, newestSeq: 12, isLate: false, lastPolledMs: NOW - 299_999 };
const stateWith = (changes: Partial<typeof facts> | { published: PublishedForecast | null; lastPolledMs?: null }) =>
  forecastState({ ...facts, ...changes }, NOW, 300_000);

describe("the state of a table's forecasts", () => {
  test.each([
    ["ready while nothing came after the round it follows", {}, "ready"],
    ["waiting once a round came, until something is issued after it", { newestSeq: 13 }, "waiting"],
    ["waiting while the newest rounds come late", { isLate: true }, "waiting"],
    [
      "waiting where nothing was issued after the newest round",
      { published: { ...published, nextColor: null } },
      "waiting",
    ],
    ["silent where no round came for the live window", { lastPolledMs: NOW - 300_000 }, "silent"],
    ["silent where none was ever polled", { lastPolledMs: null, published }, "silent"],
    ["warming up before the first forecast", { published: null }, "warming_up"],
    ["paused, whatever else", { paused: true, newestSeq: 99 }, "paused"],
  ])("is %s", (_, changes, state) => {
    expect(stateWith(changes)).toBe(state);
  });

  test.each(["waiting", "silent", "warming_up", "paused"] as const)("carries no probabilities while %s", (state) => {
    expect(showNextColor(published, state)).toBeNull();
    expect(showNextColor(null, state)).toBeNull();
  });

  test("shows open windows while ready and waiting, and in no other state", () => {
    const states = ["ready", "waiting", "silent", "warming_up", "paused"] as const;
    expect(states.filter((state) => showWindows(published, state, []).length > 0)).toEqual(["ready", "waiting"]);
    expect(showWindows(null, "ready", [])).toEqual([]);
  });
});

test("a window is shown in the fixed shape, with its chance now until it has hit", () => {
  const shape = (now: string) =>
    '[{"feature":"window:red:80","color":"red","target":80,"forecast_id":"f3-5",' +
    '"issued_at":"2026-11-21T04:00:02.1234560Z","after_round_id":"8812343","rounds":4,"probability":0.866909,' +
    `"baseline":0.8704,"now":{"rounds_left":2,"probability":${now},"scored":false},"measured":null,` +
    `"hash":"${"cd".repeat(32)}"}]`;
  expect(JSON.stringify(showWindows(published, "ready", []))).toBe(shape("0.6348"));
  const [window] = published.windows;
  const hit = {
    ...published,
    windows: window === undefined ? [] : [{ ...window, now: { rounds_left: 2, p_ppm: null } }],
  };
  expect(JSON.stringify(showWindows(hit, "waiting", []))).toBe(shape("null"));
});

test("the accuracy of a window is that of /accuracy, computed without its histograms", () => {
  const { model, feature } = published.windows[0]!;
  const shown = (counts: Partial<Sums>) => {
    const sums = { ...emptySums(), n: 100n, hits: 80n, ...counts };
    const measured = { ...row("s", "e", sums), model, feature, period: "30d" };
    const { sample_size, hit_rate, interval_95 } = showAccuracy({ house: "a", game: "b", market: "c" }, measured);
    Object.defineProperty(sums, "histograms", { get: () => expect.fail("the histograms were read") });
    expect(showWindows(published, "ready", [measured])[0]?.measured).toEqual({
      period: "30d",
      sample_size,
      hit_rate,
      interval_95,
    });
    return interval_95;
  };
  expect(shown({})).not.toBeNull();
  expect(shown({ voidGap: 6n })).toBeNull(); // withheld
  expect(shown({ n: 0n, hits: 0n })).toBeNull();
});

test("a forecast is shown in the fixed shape, colors in their order and shares in six decimals", () => {
  expect(JSON.stringify(showNextColor(published, "ready"))).toBe(
    '{"forecast_id":"f3-7","issued_at":"2026-11-21T04:00:12.1234560Z","after_round_id":"8812345",' +
      '"target_round_id":"8812346","model":"k7@1","probabilities":{"violet":0.505001,"red":0.395999,"a":0.099},' +
      `"baseline":{"violet":0.5,"red":0.4,"a":0.1},"hash":"${"ab".repeat(32)}"}`,
  );
});

const KEYS =
  "feature model house game market period period_start period_end as_of as_of_round_id sample_size hits hit_rate interval_95 expected_rate " +
  "baseline_rate coverage not_issued late_rounds voids rate_bounds withheld pending sealed z e_value log_loss baseline_log_loss brier " +
  "baseline_brier rps baseline_rps skill skill_interval_95 calibration_error calibration_error_floor reliability references";

function sumsOf(outcomes: number[]): Sums {
  const sums = emptySums();
  for (const outcome of outcomes) {
    addForecast(sums);
    addScore(sums, scoreNextColor([500_000, 400_000, 100_000], [500_000, 400_000, 100_000], outcome));
  }
  sums.receivedRounds = BigInt(outcomes.length + 1);
  sums.notIssued = 1n;
  return sums;
}

const row = (start: string, end: string, sums: Sums, feature = "next_color") => ({
  model: "k7@1",
  feature,
  period: "24h",
  start,
  end,
  asOf: end,
  asOfRoundId: "7",
  sums,
  references: emptyReferenceSums(),
});

describe("what was measured", () => {
  test("is shown in the fixed shape", () => {
    const sums = sumsOf([0, 0, 1, 2]);
    const shown = showAccuracy({ house: "a", game: "b", market: "c" }, row("s", "e", sums));
    expect(Object.keys(shown)).toEqual(KEYS.split(" "));
    expect(shown).toMatchObject({
      feature: "next_color",
      model: "k7@1",
      house: "a",
      game: "b",
      market: "c",
      period: "24h",
      period_start: "s",
      period_end: "e",
      sample_size: 4,
      hits: 2,
      hit_rate: 0.5,
      coverage: 0.8,
      not_issued: 1,
      voids: { gap: 0, late: 0, conflict: 0, impossible: 0, operator: 0 },
      late_rounds: 0,
      withheld: null,
      as_of: "e",
      as_of_round_id: "7",
      rate_bounds: [0.5, 0.5],
      references: ["last_20", "last_100", "due"].map((name) => ({ name, log_loss: null, brier: null, skill: null })),
    });
    expect(shown.e_value).toBeGreaterThan(0);
    expect(shown.calibration_error).toBeGreaterThan(0);
    expect(shown.calibration_error_floor).toBeGreaterThan(0);
    expect(shown.reliability.reduce((n, bin) => n + bin.n, 0)).toBe(12);
  });

  test("of a house is the sum over its tables, feature by feature, and spans all of them", () => {
    const rows = [
      row("2026-01-02", "2026-01-03", sumsOf([0, 0])),
      row("2026-01-02", "2026-01-03", sumsOf([1]), "window:pink:80"),
      row("2026-01-01", "2026-01-04", sumsOf([1, 2, 2])),
    ];
    const merged = mergePeriods(rows);
    expect(merged.map(({ feature, start, end }) => ({ feature, start, end }))).toEqual([
      { feature: "next_color", start: "2026-01-01", end: "2026-01-04" },
      { feature: "window:pink:80", start: "2026-01-02", end: "2026-01-03" },
    ]);
    const [both] = merged.map((one) => showAccuracy({ house: "a", game: null, market: null }, one));
    expect(both).toMatchObject({ game: null, market: null, sample_size: 5, hits: 2, not_issued: 2, coverage: 5 / 7 });
    expect(mergePeriods([])).toEqual([]);
  });

  describe("of a house", () => {
    const table = (scored: number, voids: number) =>
      row("s", "e", { ...sumsOf(Array.from({ length: scored }, (_, n) => n % 3)), voidConflict: BigInt(voids) });
    const houseOf = (...tables: ReturnType<typeof table>[]) => {
      const [pooled] = mergePeriods(tables);
      if (pooled === undefined) throw new Error("expected a row");
      const figures = showAccuracy({ house: "a", game: null, market: null }, pooled);
      return { ...figures, verdict: verdictOf(pooled.sums, { period: "all", shown: 1 }) };
    };

    test("is withheld if more than 5 % of its forecasts are of tables whose own row is withheld", () => {
      expect(houseOf(table(90, 10), table(150, 0))).toMatchObject({
        sample_size: 240,
        hits: 80,
        withheld: "more than 5 % of the rounds are void, late, or of tables whose own figures are withheld",
        interval_95: null,
        z: null,
        e_value: null,
        skill: null,
        skill_interval_95: null,
        references: ["last_20", "last_100", "due"].map((name) => ({ name, skill: null })),
        verdict: "too many voids",
      });
      expect(houseOf(table(0, 10), table(190, 0)).withheld).toBeNull();
      expect(houseOf(table(9, 2), table(190, 0)).withheld).not.toBeNull();
    });

    test("is shown over all of its tables if no more than 5 % are lost", () => {
      const shown = houseOf(table(9, 1), table(190, 0));
      expect(shown).toMatchObject({ sample_size: 199, withheld: null, voids: { conflict: 1 } });
      expect(shown.skill).not.toBeNull();
      expect(houseOf(table(9, 1), table(189, 1)).withheld).not.toBeNull();
    });
  });

  test("of a house has the references of all its tables next to it", () => {
    const rows = [1, 0].map((outcome) => {
      const references = emptyReferenceSums();
      const forecast = { basePpm: [500_000, 400_000, 100_000], horizon: 1, outcome };
      scoreReferences(references, emptyReferences(3), forecast);
      return { ...row("s", "e", sumsOf([outcome])), references };
    });
    const shown = mergePeriods(rows).map((one) => showAccuracy({ house: "a", game: null, market: null }, one));
    const third = Math.log(3); // the best constant of one round each of two colors loses ln 2
    for (const { log_loss, skill } of shown[0]?.references ?? []) {
      expect(log_loss).toBeCloseTo(third, 5);
      expect(skill).toBeCloseTo(1 - third / Math.log(2), 5);
    }
  });
});
