import { expect, it } from "vitest";
import type { HeadRow } from "../../src/published/store.ts";
import { HEAD } from "../support/head-row.ts";
import { applyReading, emptyHolding } from "../../src/published/tables.ts";

/** A process that reads heads; each read returns when a poll last received a round of the house. */
function startProcess() {
  const holding = emptyHolding();
  return (...heads: Partial<HeadRow>[]) => {
    applyReading(
      holding,
      {
        houses: [{ id: "alpha", name: "Alpha", simulated: false, enabled: true, paused: false, disabledTables: [] }],
        heads: heads.map((head) => ({ ...HEAD, ...head })),
        sets: new Map(),
        replaced: new Set(),
        rounds: new Map(),
        accuracy: new Map(),
      },
      10,
    );
    return holding.houses.get("alpha")?.newestPolledMs;
  };
}

it("is the newest time of the tables of a house", () => {
  const read = startProcess();
  expect(read({ id: 1 })).toBeNull();
  expect(read({ id: 1, lastPolledMs: 5 }, { id: 2, lastPolledMs: 3 })).toBe(5);
  expect(read({ id: 2, lastPolledMs: 4 })).toBe(5);
  expect(read({ id: 2, lastPolledMs: 6 })).toBe(6);
});

it("goes back with the time of a table, after the database's clock was ahead and was set back", () => {
  const read = startProcess();
  expect(read({ id: 1, lastPolledMs: 900 }, { id: 2, lastPolledMs: 800 })).toBe(900);
  expect(read({ id: 1, lastPolledMs: 5 })).toBe(800);
  expect(read({ id: 2, lastPolledMs: 4 }, { id: 3, lastPolledMs: 6 })).toBe(6);
  expect(read({ id: 3, lastPolledMs: null })).toBe(5);
});
