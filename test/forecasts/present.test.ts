import { describe, expect, test } from "vitest";
import type { PublishedForecast } from "../../src/forecasts/issue-store.ts";
import { forecastState, mergePeriods, showAccuracy, showNextColor } from "../../src/forecasts/present.ts";
import { scoreNextColor } from "../../src/forecasts/scoring.ts";
import { addForecast, addScore, addVoid, emptySums, type Sums } from "../../src/forecasts/sums.ts";

const published: PublishedForecast = {
  cutoff_seq: "12",
  next_color: {
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
};
const NOW = 1_000_000;
const facts = { paused: false, published, newestSeq: 12, lastPolledMs: NOW - 299_999 };
const stateWith = (changes: Partial<typeof facts> | { published: PublishedForecast | null; lastPolledMs?: null }) =>
  forecastState({ ...facts, ...changes }, NOW, 300_000);

describe("the state of a table's forecasts", () => {
  test.each([
    ["ready while nothing came after the round it follows", {}, "ready"],
    ["waiting once a round came, until something is issued after it", { newestSeq: 13 }, "waiting"],
    [
      "waiting where nothing was issued after the newest round",
      { published: { ...published, next_color: null } },
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
});

test("a forecast is shown in the fixed shape, colors in their order and shares in six decimals", () => {
  expect(JSON.stringify(showNextColor(published, "ready"))).toBe(
    '{"forecast_id":"f3-7","issued_at":"2026-11-21T04:00:12.1234560Z","after_round_id":"8812345",' +
      '"target_round_id":"8812346","model":"k7@1","probabilities":{"violet":0.505001,"red":0.395999,"a":0.099},' +
      `"baseline":{"violet":0.5,"red":0.4,"a":0.1},"hash":"${"ab".repeat(32)}"}`,
  );
});

const KEYS =
  "feature model house game market period period_start period_end sample_size hits hit_rate interval_95 expected_rate " +
  "baseline_rate coverage not_issued voids rate_bounds pending z e_value log_loss baseline_log_loss brier " +
  "baseline_brier rps baseline_rps skill skill_interval_95 calibration_error calibration_error_floor reliability references";

function sumsOf(outcomes: number[], seq: bigint): Sums {
  const sums = emptySums();
  for (const outcome of outcomes) {
    addForecast(sums, { seq, hash: "ab".repeat(32) });
    addScore(sums, scoreNextColor([500_000, 400_000, 100_000], [500_000, 400_000, 100_000], outcome));
  }
  sums.onTimeRounds = BigInt(outcomes.length + 1);
  sums.notIssued = 1n;
  return sums;
}

const row = (start: string, end: string, sums: Sums, feature = "next_color") => ({
  model: "k7@1",
  feature,
  period: "24h",
  start,
  end,
  sums,
});

describe("what was measured", () => {
  test("is shown in the fixed shape", () => {
    const sums = sumsOf([0, 0, 1, 2], 1n);
    addVoid(sums, "late");
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
      voids: { gap: 0, house: 0, quarantine: 0, late: 1 },
      skill: 0,
      references: [],
    });
  });

  test("of a house is the sum over its tables, feature by feature, and spans all of them", () => {
    const rows = [
      row("2026-01-02", "2026-01-03", sumsOf([0, 0], 1n)),
      row("2026-01-02", "2026-01-03", sumsOf([1], 1n), "window:pink:80"),
      row("2026-01-01", "2026-01-04", sumsOf([1, 2, 2], 2n)),
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
});
