import { readFileSync } from "node:fs";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { hundredthsOf } from "../../../src/houses/fairness/outcome.ts";
import type { PresetName } from "../../../src/houses/fairness/presets.ts";
import { previousHash, walkBack } from "../../../src/houses/fairness/walk.ts";
import { RECORDED_FOLDER } from "../../support/recorded.ts";
import { chainFrom, knownPlaces, PUBLIC_CHAINS } from "./chains-fixture.ts";

/** Rows of a recorded file by the names of its columns. */
function rowsOf(name: string): Record<string, string>[] {
  const bytes = readFileSync(path.join(RECORDED_FOLDER, name));
  const text = (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString();
  const [head = "", ...lines] = text.trim().split(/\r?\n/);
  const columns = head.split(",");
  return lines.map((line) => Object.fromEntries(line.split(",").map((value, at) => [columns[at] ?? "", value])));
}

const centsOf = (multiplier: string) => Math.max(100, Math.round(Number(multiplier) * 100));

/** Compares a public chain with rounds that were recorded with their number: how many, and those that differ. */
function compare(key: PresetName, rows: readonly Record<string, string>[]) {
  const known = PUBLIC_CHAINS.find((one) => one.key === key);
  if (known === undefined) throw new Error(`expected the chain ${key}`);
  const chain = chainFrom({ chain: key });
  const recorded = new Map(rows.map(({ round_id = "", multiplier = "" }) => [Number(round_id), centsOf(multiplier)]));
  const [newest, oldest] = [Math.max(...recorded.keys()), Math.min(...recorded.keys())];
  const above = knownPlaces(known, chain).findLast(({ id }) => id > newest);
  if (above === undefined) throw new Error(`expected a known hash above ${newest}`);
  const differing: string[] = [];
  let compared = 0;
  walkBack(
    above.hash,
    above.id - oldest,
    (hash, step) => {
      const cents = recorded.get(above.id - step);
      if (cents === undefined) return;
      compared += 1;
      const proven = hundredthsOf(chain, hash);
      if (proven !== cents) differing.push(`${above.id - step}: ${proven} and not ${cents}`);
    },
    chain.step,
  );
  return { compared, differing };
}

describe.skipIf(RECORDED_FOLDER === "")("rounds that were really played", () => {
  it("of BC.Game are what their published hashes give, to the cent, and each hash leads to the next", () => {
    const rows = rowsOf("bcgame_verify_slice.csv");
    const chain = chainFrom({ chain: "bcgame-2022" });
    expect(rows.length).toBeGreaterThan(1_000);
    const differing = rows.filter(
      ({ hash = "", multiplier = "" }) => hundredthsOf(chain, hash) !== centsOf(multiplier),
    );
    expect(differing).toEqual([]);
    const hashes = new Map(rows.map(({ round_id, hash = "" }) => [Number(round_id), hash]));
    const broken = [...hashes].filter(([id, hash]) => {
      const before = hashes.get(id - 1);
      return before !== undefined && before !== previousHash(hash, chain.step);
    });
    expect(broken).toEqual([]);
  });

  it("of BC.Game need the rounding to nine digits", () => {
    const chain = chainFrom({ chain: "bcgame-2022" });
    const differing = rowsOf("bcgame_verify_slice.csv").filter(
      ({ hash = "", multiplier = "" }) => hundredthsOf({ ...chain, rule: "B" }, hash) !== centsOf(multiplier),
    );
    expect(differing).toHaveLength(30);
    expect(differing.every(({ multiplier }) => Number(multiplier) > 600)).toBe(true);
  });

  it("of bustabit in 2026 are those of its classic chain", () => {
    const rows = rowsOf("bustabit_2026.csv.gz").filter(({ multiplier }) => multiplier !== "");
    const { compared, differing } = compare("bustabit-classic", rows);
    expect(differing).toEqual([]);
    expect(compared).toBe(16_859);
  });

  it("of Blaze in 2022 are those of its chain", () => {
    const { compared, differing } = compare("blaze", rowsOf("blaze_crash_2022.csv.gz"));
    expect(differing).toEqual([]);
    expect(compared).toBe(1_088);
  });

  it("of Stake in 2026 are single-precision numbers, as its proofs take them to be", () => {
    const values = rowsOf("stake_crash_2026.csv.gz").map(({ multiplier }) => Number(multiplier));
    expect(values).toHaveLength(4_223);
    const others = values.filter((value) => !isShortestSingle(value));
    expect(others).toEqual([]);
  });
});

/** Is this the shortest decimal of the single-precision number nearest to it? */
function isShortestSingle(value: number): boolean {
  const single = Math.fround(value);
  for (let digits = 1; digits <= 9; digits += 1) {
    const decimal = Number(single.toPrecision(digits));
    if (Math.fround(decimal) === single) return decimal === value;
  }
  return false;
}
