import { expect, it } from "vitest";
import { applyReading, emptyHolding } from "../../src/published/tables.ts";
import type { HeadRow } from "../../src/published/store.ts";
import { HEAD } from "../support/head-row.ts";
import { delayedReading } from "../../src/site/delayed.ts";

const START = Date.parse("2026-11-21T12:00:00Z");

/** A process that holds a table, reads each reading when it is published, and shows one only when it is requested. */
function startProcess() {
  const holding = emptyHolding();
  const apply = (head: Partial<HeadRow>) =>
    applyReading(
      holding,
      {
        houses: [{ id: "alpha", name: "Alpha", simulated: false, enabled: true, paused: false, disabledTables: [] }],
        heads: [{ ...HEAD, ...head }],
        sets: new Map(),
        replaced: new Set(),
        rounds: new Map(),
        accuracy: new Map(),
      },
      10,
    );
  return {
    publish(second: number) {
      const made_at = new Date(START + second * 1_000).toISOString();
      apply({ readingAt: second, reading: { seq: "9", rounds: 9, made_at, facts: [] } });
    },
    /** A head whose reading is the one that is held. */
    pass: (second: number) => apply({ readingAt: second, reading: null }),
    reset: () => apply({ readingAt: null, reading: null }),
    /** The second at which the shown reading was made; null if none is shown. */
    shownAt(second: number) {
      const table = holding.byId.get(1);
      const reading = table && delayedReading(table, START + second * 1_000);
      return reading ? (Date.parse(reading.made_at) - START) / 1_000 : null;
    },
  };
}

it("shows the first visitor of hours a reading that is one to three minutes old", () => {
  const one = startProcess();
  for (let second = 0; second <= 7_200; second += 10) one.publish(second);
  expect(one.shownAt(7_200)).toBeGreaterThanOrEqual(7_200 - 180);
  expect(one.shownAt(7_200)).toBeLessThanOrEqual(7_200 - 60);
});

it("never shows a reading that is less than a minute old, and after two minutes none older than three", () => {
  const one = startProcess();
  for (let second = 3; second <= 1_200; second += 1) {
    if (second % 10 === 3) one.publish(second);
    const shown = one.shownAt(second);
    if (shown === null) expect(second).toBeLessThan(63);
    else expect(second - shown).toBeGreaterThanOrEqual(60);
    if (second > 120) expect(second - Number(shown)).toBeLessThanOrEqual(180);
  }
});

it("shows the same reading from a process with visitors, one without, and one that started later", () => {
  const [visited, unvisited, later] = [startProcess(), startProcess(), startProcess()];
  for (let second = 0; second <= 1_000; second += 10) {
    for (const one of [visited, unvisited, ...(second >= 500 ? [later] : [])]) one.publish(second);
    visited.shownAt(second);
    expect(unvisited.shownAt(second)).toBe(visited.shownAt(second));
    if (second >= 700) expect(later.shownAt(second)).toBe(visited.shownAt(second));
  }
});

it("does not return to an earlier reading when a quiet table has a new one", () => {
  const one = startProcess();
  for (const second of [0, 10, 20, 30]) one.publish(second);
  expect(one.shownAt(95)).toBe(30);
  one.publish(95);
  one.publish(105);
  one.publish(120);
  expect(one.shownAt(120)).toBe(30);
  expect(one.shownAt(155)).toBe(95);
});

it("shows the last reading of a table that became quiet, and none after its numbering began again", () => {
  const one = startProcess();
  for (let second = 0; second <= 130; second += 10) one.publish(second);
  one.pass(130);
  expect(one.shownAt(10_000)).toBe(130);
  one.reset();
  expect(one.shownAt(10_000)).toBeNull();
});
