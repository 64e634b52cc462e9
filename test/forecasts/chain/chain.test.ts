import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  FIRST_PREV_HASH,
  forecastHash,
  forecastStrings,
  type IssuedForecast,
} from "../../../src/forecasts/chain/chain.ts";

const issued: IssuedForecast = {
  seq: 1n,
  forecastId: "0193c0de-7a7e-7d6e-8a3b-000000000001",
  table: "bustabit/crash/global",
  model: "k7@1",
  feature: "next_color",
  issuedAt: "2026-11-21T04:00:12.1234560Z",
  cutoffRoundId: "8812345",
  historyHash: "ab".repeat(32),
  targetRoundId: "8812346",
  horizon: 1,
  pPpm: [517_000, 386_000, 97_000],
  basePpm: [515_000, 388_000, 97_000],
};

describe("the chain of forecasts", () => {
  test("hashes the strings of the export, keys sorted, after the hash before", () => {
    // RFC 8785 for an object of plain strings is its JSON with sorted keys: anyone can write it out
    const jcs =
      '{"base_ppm":"515000|388000|97000","cutoff_round_id":"8812345","feature":"next_color",' +
      '"forecast_id":"0193c0de-7a7e-7d6e-8a3b-000000000001",' +
      `"history_hash":"${"ab".repeat(32)}","horizon":"1","issued_at":"2026-11-21T04:00:12.1234560Z",` +
      '"model":"k7@1","p_ppm":"517000|386000|97000","seq":"1","table":"bustabit/crash/global",' +
      '"target_round_id":"8812346"}';
    const expected = createHash("sha256")
      .update(`${"0".repeat(64)}\n${jcs}`)
      .digest("hex");
    expect(forecastHash(FIRST_PREV_HASH, forecastStrings(issued))).toBe(expected);
  });

  test("does not care in which order the columns were read", () => {
    const strings = forecastStrings(issued);
    const { seq, table, ...others } = strings;
    expect(forecastHash(FIRST_PREV_HASH, { ...others, table, seq })).toBe(forecastHash(FIRST_PREV_HASH, strings));
  });

  test("breaks when any field or the hash before it changes by one character", () => {
    const strings = forecastStrings(issued);
    const hash = forecastHash(FIRST_PREV_HASH, strings);
    const changed = Object.entries(strings).map(([name, value]) =>
      forecastHash(FIRST_PREV_HASH, { ...strings, [name]: `${value}0` }),
    );
    const all = [hash, ...changed, forecastHash("1".repeat(64), strings)];
    expect(all).toHaveLength(14);
    expect(new Set(all).size).toBe(all.length);
  });

  test("writes a window and a table of opaque ids as the export does", () => {
    const window: IssuedForecast = {
      ...issued,
      seq: 9_007_199_254_740_993n,
      feature: "window:pink:80",
      targetRoundId: null,
      horizon: 16,
      pPpm: [811_376],
      basePpm: [810_000],
    };
    expect(forecastStrings(window)).toMatchObject({
      seq: "9007199254740993",
      target_round_id: "",
      horizon: "16",
      p_ppm: "811376",
      base_ppm: "810000",
    });
  });

  test("keeps text that is not plain letters as RFC 8785 does", () => {
    const strings = { ...forecastStrings(issued), cutoff_round_id: 'é"\\\n\u0001€' };
    const jcs = `{${Object.entries(strings)
      .map(([name, value]) => `"${name}":${name === "cutoff_round_id" ? '"é\\"\\\\\\n\\u0001€"' : `"${value}"`}`)
      .toSorted()
      .join(",")}}`;
    expect(forecastHash(FIRST_PREV_HASH, strings)).toBe(
      createHash("sha256").update(`${FIRST_PREV_HASH}\n${jcs}`, "utf8").digest("hex"),
    );
  });

  test.each(["2026-11-21T04:00:12.123456Z", "2026-11-21 04:00:12.1234560+00", "2026-11-21T04:00:12.1234560+00:00"])(
    "refuses the time %s, which the export would write differently",
    (issuedAt) => {
      expect(() => forecastStrings({ ...issued, issuedAt })).toThrow(`got ${issuedAt}`);
    },
  );
});
