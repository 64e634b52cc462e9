import { expect, it } from "vitest";
import { accuracy } from "../../src/api/accuracy.ts";
import { emptyReferenceSums } from "../../src/forecasts/accuracy/figures/reference-sums.ts";
import { emptySums } from "../../src/forecasts/accuracy/figures/sums.ts";
import { PERIODS } from "../../src/forecasts/accuracy/periods.ts";
import type { PublishedAccuracy } from "../../src/forecasts/accuracy/published-store.ts";
import { HEAD } from "../support/head-row.ts";
import { applyReading, emptyHolding, type Reading } from "../../src/published/tables.ts";

const PLAN = { name: "Pro", houses: null };

/** A table in memory with a row for each period, and how often the sums of a row were read. */
function makeTable() {
  const holding = emptyHolding();
  const reads = { count: 0 };
  const apply = (changed: Partial<Reading>) => {
    const nothing = { houses: null, heads: [], sets: new Map(), replaced: new Set<number>(), rounds: new Map() };
    applyReading(holding, { ...nothing, accuracy: new Map(), ...changed }, 10);
  };
  const publish = (version: number, n: bigint) => {
    const rows = PERIODS.map((period): PublishedAccuracy => {
      const sums = { ...emptySums(), n };
      return {
        tableId: 1,
        model: "k7@1",
        feature: "next_color",
        period,
        start: "s",
        end: "e",
        asOf: null,
        asOfRoundId: null,
        asOfSeq: 9,
        changedMs: 0,
        version: BigInt(version),
        references: emptyReferenceSums(),
        get sums() {
          reads.count += 1;
          return sums;
        },
      };
    });
    apply({ accuracy: new Map([[1, { version, rows }]]) });
  };
  const house = { id: "alpha", name: "Alpha", simulated: false, enabled: true, paused: false, disabledTables: [] };
  apply({ houses: [house], heads: [HEAD] });
  publish(1, 5n);
  const get = (query: string) =>
    accuracy.compose(new URLSearchParams(query), { memory: { tables: holding }, plan: PLAN });
  return { reads, apply, publish, get };
}

it("computes the figures of a row once, also if callers alternate between periods and new rounds arrive", () => {
  const { reads, apply, publish, get } = makeTable();
  const first = get("period=24h");
  get("period=30d");
  const { count } = reads;
  for (let version = 2; version < 5; version++) {
    apply({ heads: [{ ...HEAD, version, lastSeq: 9 + version }] });
    expect(get("period=24h").json()).toBe(first.json());
    expect(get("period=24h&feature=next_color").etag).toBe(first.etag);
    get("period=30d");
  }
  expect(reads.count).toBe(count);

  publish(2, 6n);
  expect(get("period=24h").json()).toContain('"sample_size":6');
  expect(get("period=24h").etag).not.toBe(first.etag);
});
