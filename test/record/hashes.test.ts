import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { hash } from "node:crypto";
import canonicalize from "canonicalize";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  FIRST_PREVIOUS_HASH,
  forecastHash,
  forecastStrings,
  historyHash,
  historyLink,
  historyStrings,
  scoreHash,
  scoreStrings,
  type HashedForecast,
  type HashedRound,
  type HashedScore,
} from "../../src/record/hashes.ts";

interface Vector {
  fields: Record<string, string>;
  hash: string;
}

const golden = JSON.parse(readFileSync(new URL("golden.json", import.meta.url), "utf8")) as Record<string, Vector[]>;

const round: HashedRound = {
  seq: 1n,
  roundId: "8812345",
  hundredths: 187,
  color: "blue",
  source: "poll",
  occurredAt: null,
  requestedAt: "2026-11-21T04:00:11.5000000Z",
  receivedAt: "2026-11-21T04:00:11.7500000Z",
  absentAt: "2026-11-21T04:00:09.5000000Z",
  late: false,
  afterGap: false,
};
const forecast: HashedForecast = {
  seq: 1n,
  forecastId: "f7-1",
  table: "bustabit/crash/global",
  model: "k7@1",
  feature: "next_color",
  issuedAt: "2026-11-21T04:00:12.1234560Z",
  absentAt: "2026-11-21T04:00:09.5000000Z",
  pauseMs: 5000,
  cutoffRoundId: "8812345",
  historyHash: historyHash(FIRST_PREVIOUS_HASH, historyStrings(round)),
  targetRoundId: "8812346",
  horizon: 1,
  pPpm: [517_000, 386_000, 97_000],
  basePpm: [515_000, 388_000, 97_000],
};
const score: HashedScore = {
  forecastId: "f7-1",
  rev: 1,
  reason: "",
  outcome: "blue",
  settledSeq: 2n,
  targetRequestedAt: "2026-11-21T04:00:26.5000000Z",
  scoredAt: "2026-11-21T04:00:26.9000000Z",
};

describe("the hashes of the record", () => {
  test.each([
    ["history", historyHash],
    ["forecast", forecastHash],
    ["score", scoreHash],
  ] as const)("chain the golden vectors of a %s as the Python script does", (name, hashOf) => {
    let previous = FIRST_PREVIOUS_HASH;
    for (const { fields, hash: expected } of golden[name] ?? []) {
      previous = hashOf(previous, fields as never);
      expect(previous).toBe(expected);
    }
    expect(golden[name]?.length).toBeGreaterThan(1);
  });

  test("equal those of the current script, if Python is available", (context) => {
    const run = spawnSync("python3", [new URL("golden.py", import.meta.url).pathname, "--check"], { timeout: 20_000 });
    if (run.error !== undefined) context.skip("python3 is not installed");
    expect([run.status, run.stderr.toString()]).toEqual([0, ""]);
  });

  test("cover the strings that the export writes", () => {
    expect(historyStrings(round)).toEqual(golden["history"]?.[0]?.fields);
    expect(forecastStrings(forecast)).toEqual(golden["forecast"]?.[0]?.fields);
    expect(scoreStrings(score)).toEqual(golden["score"]?.[0]?.fields);
    expect(scoreStrings({ ...score, rev: 2, reason: "conflict", outcome: null })).toEqual(golden["score"]?.[1]?.fields);
  });

  test.each([
    ["history", historyHash],
    ["forecast", forecastHash],
    ["score", scoreHash],
  ] as const)("equal RFC 8785 of a %s for any text, whatever order its fields come in", (name, hashOf) => {
    const names = Object.keys(golden[name]?.[0]?.fields ?? {});
    const text = fc.oneof(
      fc.string(), // ASCII
      fc.string({ unit: "binary" }), // any code point: control characters, astral ones
      fc.constantFrom("\u0000\u001f\u007f", 'a"b\\c/d', "\b\f\n\r\t", "\u2028\u2029\ufeff", "é€😀"),
    );
    const rows = fc.tuple(
      fc.shuffledSubarray(names, { minLength: names.length }),
      fc.array(text, { minLength: names.length, maxLength: names.length }),
    );
    fc.assert(
      fc.property(rows, text, ([shuffled, texts], previous) => {
        const fields = Object.fromEntries(shuffled.map((field, at) => [field, texts[at] ?? ""]));
        expect(hashOf(previous, fields as never)).toBe(hash("sha256", `${previous}\n${canonicalize(fields)}`));
      }),
      { numRuns: 300 },
    );
  });

  test("link rounds of one response as their exported strings do", () => {
    const times = fc.constantFrom(null, "2026-11-21T04:00:09.5000000Z", "2026-11-21T04:00:11.7500000Z");
    const given = fc.record({
      seq: fc.bigInt({ min: 1n, max: 2n ** 62n }),
      roundId: fc.string({ unit: fc.constantFrom("7", '"', "\\", "\n", "é", "😀") }),
      hundredths: fc.oneof(fc.maxSafeNat(), fc.bigInt({ min: 100n, max: 10n ** 11n })),
      color: fc.string({ unit: fc.constantFrom("b", '"', "ü") }),
      source: fc.constantFrom("poll", "history", "computed", "import"),
      occurredAt: times,
      requestedAt: times,
      absentAt: times,
      late: fc.boolean(),
      afterGap: fc.boolean(),
    });
    fc.assert(
      fc.property(given, fc.string(), (changed, previous) => {
        const one = { ...round, ...changed };
        expect(historyLink(one)(previous, one, one.occurredAt)).toBe(historyHash(previous, historyStrings(one)));
      }),
      { numRuns: 300 },
    );
    expect(() => historyLink({ ...round, requestedAt: "2026-11-21" })).toThrow("got 2026-11-21");
    expect(() => historyLink(round)("", round, "2026-11-21")).toThrow("got 2026-11-21");
    expect(() => historyLink(round)("", { ...round, absentAt: "2026-11-21" }, null)).toThrow("got 2026-11-21");
    expect(() => historyLink(round)("", { ...round, hundredths: 1.5 }, null)).toThrow("expected an exact integer");
    expect(() => historyLink(round)("", { ...round, roundId: "\ud800" }, null)).toThrow("expected round_id");
  });

  test("change with the previous hash and with each field", () => {
    const fields = forecastStrings(forecast);
    const changed = Object.entries(fields).map(([name, value]) =>
      forecastHash("a", { ...fields, [name]: `${value}0` }),
    );
    const all = [forecastHash("a", fields), forecastHash("b", fields), ...changed];
    expect(new Set(all).size).toBe(Object.keys(fields).length + 2);
  });

  test.each(["2026-11-21T04:00:12.123456Z", "2026-11-21 04:00:12.1234560+00", "2026-11-21T04:00:12.1234560+00:00"])(
    "refuse the time %s, which the export would write differently",
    (time) => {
      expect(() => forecastStrings({ ...forecast, issuedAt: time })).toThrow(`got ${time}`);
      expect(() => historyStrings({ ...round, receivedAt: time })).toThrow(`got ${time}`);
      expect(() => scoreStrings({ ...score, scoredAt: time })).toThrow(`got ${time}`);
    },
  );

  test("refuse half of a surrogate pair, which UTF-8 cannot hold", () => {
    const lone = fc.tuple(fc.string(), fc.integer({ min: 0xd800, max: 0xdfff }), fc.constantFrom("", "a", "é"));
    fc.assert(
      fc.property(lone, ([before, half, after]) => {
        const roundId = `${before}${String.fromCharCode(half)}${after}`;
        expect(() => historyHash("", historyStrings({ ...round, roundId }))).toThrow(
          "expected round_id to be well-formed text",
        );
      }),
    );
  });

  test.each([1.5, Number.NaN, Infinity, 2 ** 53])("refuse the number %d, which is no exact integer", (number) => {
    const message = `expected an exact integer, got ${number}`;
    expect(() => historyStrings({ ...round, hundredths: number })).toThrow(message);
    expect(() => forecastStrings({ ...forecast, pauseMs: number })).toThrow(message);
    expect(() => forecastStrings({ ...forecast, horizon: number })).toThrow(message);
    expect(() => forecastStrings({ ...forecast, pPpm: [number] })).toThrow(message);
    expect(() => forecastStrings({ ...forecast, basePpm: [1, number] })).toThrow(message);
    expect(() => scoreStrings({ ...score, rev: number })).toThrow(message);
  });
});
