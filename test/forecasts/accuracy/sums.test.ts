import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { pitMass } from "../../../src/forecasts/accuracy/figures/pit.ts";
import { nextColorPpm } from "../../../src/forecasts/model/ppm.ts";
import { scoreNextColor, scoreWindow } from "../../../src/forecasts/score/scoring.ts";
import { sumsFromJson, sumsToJson } from "../../../src/forecasts/accuracy/figures/sums-json.ts";
import { emptySums, mergeSums, type Sums } from "../../../src/forecasts/accuracy/figures/sums.ts";
import { addForecast, addPending, addScore, addVoid, addWait } from "../plain-sums.ts";

/** One thing that happens to an accuracy row. */
type Event = (sums: Sums) => void;

const anyPpm = fc.integer({ min: 1, max: 999_999 });

const anyColors = (colors: number) =>
  fc
    .array(fc.double({ min: 1e-6, max: 1, noNaN: true }), { minLength: colors, maxLength: colors })
    .map((parts) => nextColorPpm(parts.map((part) => part / parts.reduce((a, b) => a + b))));

const anyEvent: fc.Arbitrary<Event> = fc.oneof(
  fc
    .integer({ min: 2, max: 8 })
    .chain((colors) => fc.tuple(anyColors(colors), anyColors(colors), fc.nat(colors - 1)))
    .map(
      ([p, base, outcome]): Event =>
        (sums) =>
          addScore(sums, scoreNextColor(p, base, outcome)),
    ),
  fc.tuple(anyPpm, anyPpm, fc.boolean()).map(
    ([p, base, hit]): Event =>
      (sums) =>
        addScore(sums, scoreWindow(p, base, hit)),
  ),
  fc.constantFrom("gap", "late", "conflict", "impossible", "operator").map(
    (kind): Event =>
      (sums) =>
        addVoid(sums, kind),
  ),
  fc.constant(addPending),
  fc.tuple(fc.nat(1_000_000), fc.nat(1_000_000)).map(
    ([a, b]): Event =>
      (sums) =>
        addWait(sums, pitMass({ belowPpm: Math.min(a, b), atPpm: Math.max(a, b) })),
  ),
  fc.constant(addForecast),
);

const rowOf = (events: readonly Event[]) => {
  const sums = emptySums();
  for (const event of events) event(sums);
  return sums;
};

/** A window of this probability that hit. */
const windowHit =
  (pPpm: number): Event =>
  (sums) =>
    addScore(sums, scoreWindow(pPpm, pPpm, true));

const text = (sums: Sums) => JSON.stringify(sumsToJson(sums));

describe("an accuracy row", () => {
  test("is the same however its scores are split, ordered and grouped", () => {
    const placed = fc.tuple(anyEvent, fc.nat(3), fc.nat(1000));
    fc.assert(
      fc.property(fc.array(placed, { maxLength: 40 }), (events) => {
        const whole = text(rowOf(events.map(([event]) => event)));
        const part = (wanted: number) =>
          rowOf(
            events
              .filter(([, index]) => index === wanted)
              .toSorted(([, , x], [, , y]) => x - y)
              .map(([event]) => event),
          );
        const [a, b, c, d] = [part(0), part(1), part(2), part(3)];
        expect(text(mergeSums([a, b, c, d]))).toBe(whole);
        expect(text(mergeSums([d, b, c, a]))).toBe(whole);
        expect(text(mergeSums([mergeSums([a, b]), mergeSums([c, d])]))).toBe(whole);
        expect(text(mergeSums([a, mergeSums([b, mergeSums([c, emptySums(), d])])]))).toBe(whole);
      }),
    );
  });

  test("leaves the rows it was merged from as they were", () => {
    const row = rowOf([
      (sums) => addScore(sums, scoreNextColor([505_000, 396_000, 99_000], [505_000, 396_000, 99_000], 0)),
    ]);
    const before = text(row);
    const merged = mergeSums([row, row]);
    addScore(merged, scoreNextColor([505_000, 396_000, 99_000], [505_000, 396_000, 99_000], 2));
    expect(text(row)).toBe(before);
    expect([merged.n, merged.confusion]).toEqual([3n, [2n, 0n, 1n]]);
  });

  test("is restored from its JSON whatever it contains", () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 20 }), (events) => {
        const sums = rowOf(events);
        expect(sumsFromJson(JSON.parse(text(sums)))).toEqual(sums);
      }),
    );
  });

  test("gives the same JSON whatever the order in which its bins were filled", () => {
    expect(text(rowOf([10_000, 99_999, 811_376].map(windowHit)))).toBe(
      text(rowOf([811_376, 10_000, 99_999].map(windowHit))),
    );
  });

  test("holds every integer of its scores", () => {
    const sums = emptySums();
    const p = [515_000, 384_000, 101_000];
    const base = [505_000, 396_000, 99_000];
    addForecast(sums);
    addForecast(sums);
    addScore(sums, scoreNextColor(p, base, 0));
    addScore(sums, scoreNextColor(p, base, 2));
    addVoid(sums, "late");
    addPending(sums);
    expect(sumsToJson(sums)).toEqual({
      counts: {
        forecasts: "2",
        n: "2",
        hits: "1",
        void_gap: "0",
        void_late: "1",
        void_conflict: "0",
        void_impossible: "0",
        void_operator: "0",
        pending: "1",
        sealed: "0",
        received_rounds: "0",
        late_rounds: "0",
        not_issued: "0",
        sum_p: "1030000",
        sum_p_base: "1010000",
        sum_pq: "499550000000",
        sum_brier: "1613764000000",
        sum_brier_base: `${495_000 ** 2 + 396_000 ** 2 + 99_000 ** 2 + 505_000 ** 2 + 396_000 ** 2 + 901_000 ** 2}`,
        sum_rps: `${485_000 ** 2 + 101_000 ** 2 + 515_000 ** 2 + 899_000 ** 2}`,
        sum_rps_base: `${495_000 ** 2 + 99_000 ** 2 + 505_000 ** 2 + 901_000 ** 2}`,
        sum_ll: `${663_588 + 2_292_635}`,
        sum_ll_base: `${683_197 + 2_312_635}`,
      },
      brier_by_color: [485_000 ** 2 + 515_000 ** 2, 2 * 384_000 ** 2, 101_000 ** 2 + 899_000 ** 2].map(String),
      rps_by_color: [485_000 ** 2 + 515_000 ** 2, 101_000 ** 2 + 899_000 ** 2, 0].map(String),
      confusion: ["1", "0", "1"],
      // hit and miss at p = 0.515, computed independently in Python
      sum_ln_e: ["-48606", "-8144", "502", "-5512", "-23382", "-80607"],
      pit: [],
      histograms: [{ 515: ["2", "1030000", "1"] }, { 384: ["2", "768000", "0"] }, { 101: ["2", "202000", "1"] }],
    });
  });

  test("keeps a window's stated probability in one histogram", () => {
    const sums = emptySums();
    addScore(sums, scoreWindow(811_376, 810_000, true));
    addScore(sums, scoreWindow(811_999, 810_000, false));
    addScore(sums, scoreWindow(999_999, 810_000, true));
    expect(sums.histograms).toEqual([[811, 2, 1_623_375, 1, 999, 1, 999_999, 1]]);
    expect(sums.confusion).toEqual([]);
  });

  test("stays exact beyond what a double can count", () => {
    const huge = mergeSums(
      Array.from({ length: 5000 }, () => {
        const row = emptySums();
        addScore(row, scoreNextColor([999_999, 1], [500_000, 500_000], 1));
        return row;
      }),
    );
    expect(huge.sumBrier).toBe(5000n * 2n * 999_999n ** 2n);
    expect(huge.sumBrier).toBeGreaterThan(BigInt(Number.MAX_SAFE_INTEGER));
    expect(sumsFromJson(sumsToJson(huge)).sumBrier).toBe(huge.sumBrier);
  });

  test.each<[string, (json: ReturnType<typeof sumsToJson>) => unknown]>([
    ["a count is missing", (json) => ({ ...json, counts: { ...json.counts, n: undefined } })],
    ["a count is a number", (json) => ({ ...json, counts: { ...json.counts, n: 1 } })],
    ["a count has a leading zero", (json) => ({ ...json, counts: { ...json.counts, n: "01" } })],
    ["a count is unknown", (json) => ({ ...json, counts: { ...json.counts, extra: "1" } })],
    ["a bin lies above a million ppm", (json) => ({ ...json, histograms: [{ 1000: ["1", "1000000", "1"] }] })],
    ["it was written without the bets", ({ sum_ln_e: _bets, ...json }) => json],
    ["a bet is missing", (json) => ({ ...json, sum_ln_e: json.sum_ln_e.slice(1) })],
    ["a bin of waits is missing", (json) => ({ ...json, pit: ["1000000"] })],
    ["something was added", (json) => ({ ...json, note: "" })],
    ["there is none", () => null],
  ])("is refused when %s", (_, damage) => {
    expect(() => sumsFromJson(damage(sumsToJson(emptySums())))).toThrow("expected the sums of an accuracy row, got");
  });
});
