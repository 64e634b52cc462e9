import { describe, expect, it } from "vitest";
import { createRowKeys, type OrderOptions } from "../../src/import/order.ts";
import { findContradictions, countTime, emptySurvey } from "../../src/import/survey.ts";
import type { KnownRound } from "../../src/rounds/round.ts";

/** Orders rows of lines 2, 3 …, given as [number, ms]. */
function order(rows: readonly (readonly [number | null, number | null])[], options: Partial<OrderOptions> = {}) {
  const keys = createRowKeys();
  rows.forEach(([number, ms], place) => keys.add(place + 2, number === null ? null : BigInt(number), ms));
  const found = keys.order({ roundIds: "opaque", order: "auto", byTime: true, newest: null, ...options });
  return { ...found, lines: [...found.lines], far: found.far && { ...found.far, lines: [...found.far.lines] } };
}

const numbers = (...ids: number[]) => ids.map((id) => [id, null] as const);
const times = (...ms: (number | null)[]) => ms.map((one) => [null, one] as const);

describe("the order of a file", () => {
  it("is by number if ids are consecutive, the first line of a number first", () => {
    expect(order(numbers(9, 8, 8, 6, 5), { roundIds: "consecutive" })).toEqual({
      lines: [6, 5, 3, 4, 2],
      far: null,
      listed: "newest_first",
      decidedBy: "ids",
      takenBy: "number",
      isReversed: false,
      missing: 1n,
    });
    expect(order(numbers(1, 2, 3, 4, 9), { roundIds: "consecutive" })).toMatchObject({
      lines: [2, 3, 4, 5, 6],
      listed: "newest_last",
      missing: 4n,
    });
  });

  it("leaves out numbers more than ten million above those before them and the table's newest", () => {
    const found = (ids: number[], newest: bigint | null = null) => {
      const { lines, far, missing } = order(numbers(...ids), { roundIds: "consecutive", newest });
      return { lines, far, missing };
    };
    const time = 1_732_723_200_000;
    expect(found([1, time, 2])).toEqual({ lines: [2, 4], far: { lines: [3], above: 2n }, missing: 0n });
    expect(found([1, time])).toEqual({ lines: [2], far: { lines: [3], above: 1n }, missing: 0n });
    expect(found([time, time + 1, 5], 9n)).toEqual({ lines: [4], far: { lines: [2, 3], above: 9n }, missing: 0n });
    expect(found([time], 9n)).toEqual({ lines: [], far: { lines: [2], above: 9n }, missing: 0n });
    // a table of such numbers; holes that are smaller; rounds from before a hole
    expect(found([time, time + 1])).toMatchObject({ lines: [2, 3], far: null });
    expect(found([10_000_001, 20_000_001], 1n)).toMatchObject({ lines: [2, 3], far: null });
    expect(found([10_000_002], 1n)).toMatchObject({ lines: [], far: { lines: [2] } });
    expect(found([1, 2, time - 1, time, time + 1], BigInt(time))).toMatchObject({ lines: [2, 3, 4, 5, 6], far: null });
    expect(found([1, time, time + 1])).toMatchObject({ lines: [2, 3, 4], far: null });
  });

  it("is by time if ids are opaque, equal times in the order of the file", () => {
    expect(order(times(5, 4, 4, 3, 2))).toMatchObject({
      lines: [6, 5, 4, 3, 2],
      listed: "newest_first",
      takenBy: "time",
    });
    expect(order(times(2, 4, 4, 3, 5))).toMatchObject({ lines: [2, 5, 3, 4, 6], listed: "mixed", takenBy: "time" });
  });

  it("is read from its end if times or ids fall, even if some are missing", () => {
    expect(order(times(5, null, 4, 3, 2))).toMatchObject({
      lines: [6, 5, 4, 3, 2],
      listed: "newest_first",
      decidedBy: "times",
      takenBy: "file",
      isReversed: true,
    });
    expect(order(numbers(9, 8, 7, 6))).toMatchObject({ lines: [5, 4, 3, 2], decidedBy: "ids", takenBy: "file" });
  });

  it("is as listed if there are too few steps", () => {
    expect(order(times(5, null, 4))).toMatchObject({ lines: [2, 3, 4], listed: "unknown", isReversed: false });
    expect(order(times(null, null))).toMatchObject({ lines: [2, 3], decidedBy: "nothing" });
    expect(order([])).toMatchObject({ lines: [], listed: "unknown" });
  });

  it("is not reversed for pages that list the newest first, with the oldest page first", () => {
    const pages = Array.from({ length: 10 }, (_, page) => Array.from({ length: 20 }, (__, n) => page * 20 + 20 - n));
    expect(order([...times(...pages.flat()), [null, null]])).toMatchObject({ listed: "mixed", isReversed: false });
  });

  it("is the given option, whatever the times", () => {
    expect(order(times(1, 2, 3, 4), { order: "newest_first" })).toMatchObject({
      lines: [5, 4, 3, 2],
      decidedBy: "option",
      takenBy: "file",
    });
    expect(order(times(4, 3, 2, 1), { order: "newest_last" })).toMatchObject({
      lines: [2, 3, 4, 5],
      isReversed: false,
    });
  });

  it("is that of the file if a clock showed some times twice", () => {
    expect(order(times(1, 2, 3, 2, 3, 4, 5, 6, 7, 8, 9, 10), { byTime: false })).toMatchObject({
      lines: Array.from({ length: 12 }, (_, n) => n + 2),
      takenBy: "file",
    });
  });

  it("holds for more rows than it first makes room for", () => {
    const ids = Array.from({ length: 5000 }, (_, n) => 5000 - n);
    const { lines, missing } = order(numbers(...ids), { roundIds: "consecutive" });
    expect(lines).toEqual(ids.map((id) => id + 1));
    expect(missing).toBe(0n);
  });
});

describe("the survey of a file", () => {
  const IMPORTED = "2026-11-21T04:00:12.1234560Z";
  const known = (seq: bigint, hundredths: number, receivedAt = IMPORTED): KnownRound => ({
    seq,
    hundredths,
    late: false,
    verified: null,
    proofHash: null,
    receivedAt,
  });

  it("separates repeats and contradictions of other lines from those of stored rounds", () => {
    const survey = emptySurvey();
    const rows = [
      ["a", 150],
      ["a", 150],
      ["a", 160],
      ["stored", 200],
      ["stored", 210],
      ["earlier", 300],
      ["polled", 400],
    ].map(([roundId, hundredths], place) => ({
      line: place + 2,
      roundId: String(roundId),
      hundredths: Number(hundredths),
    }));
    const there = new Map([
      ["stored", known(5n, 200)],
      ["earlier", known(6n, 310)],
      ["polled", known(7n, 400, "12")],
    ]);
    const refused = findContradictions(survey, rows, { known: there, storedSeq: 5n, importedAt: IMPORTED });
    expect(survey.repeats).toEqual({ inFile: 1, stored: 2 });
    expect([...refused]).toEqual([
      [4, "expected one result per round, found 1.60 for round a, which another line has with 1.50"],
      [6, "expected the stored result of the round, found 2.10 for round stored, which is stored with 2.00"],
      [7, "expected one result per round, found 3.00 for round earlier, which another line has with 3.10"],
    ]);
  });

  it("spans its times and counts rows without one", () => {
    const survey = emptySurvey();
    for (const iso of ["2026-11-21T04:00:02Z", null, "2026-11-21T04:00:01Z"]) countTime(survey, iso);
    expect(survey).toMatchObject({
      times: { from: "2026-11-21T04:00:01Z", to: "2026-11-21T04:00:02Z" },
      withoutTime: 1,
    });
  });
});
