import { expect, it } from "vitest";
import { emptyReferenceSums } from "../../src/forecasts/accuracy/figures/reference-sums.ts";
import { emptySums } from "../../src/forecasts/accuracy/figures/sums.ts";
import type { PublishedAccuracy } from "../../src/forecasts/accuracy/published-store.ts";
import { NOTHING_ISSUED } from "../../src/forecasts/published-forecast.ts";
import { NO_ROUNDS } from "../../src/published/held-rounds.ts";
import { applyReading, emptyHolding, type Table } from "../../src/published/tables.ts";
import { linesOfHouse, measureTable } from "../../src/site/accuracy/lines.ts";
import { skillsOf } from "../../src/site/accuracy/plots.ts";

const HASH = { first: "7262526239ae", second: "0a11aa22bb33" };

it("a table's figures are those of its live model, also if its name sorts first", () => {
  const table = tableWith([rowOf(`k7@1-${HASH.first}`, 5), rowOf(`k7@1-${HASH.second}`, 7)]);
  expect(measureTable(table, { feature: "next_color", period: "30d" })?.figures.sample_size).toBe(7);
});

it("a house's last line of each feature is of the parameter set that its tables use now", () => {
  const modelOf = (set: number, n: number) =>
    ["next_color", "window:pink:80"].map((feature) => ({ ...rowOf(`k7@${set}-${HASH.first}`, n), feature }));
  const tables = [tableWith(modelOf(2, 3)), tableWith([...modelOf(1, 5), ...modelOf(2, 7)])];
  const lines = linesOfHouse(tables, { feature: "all", period: "30d" }).map((line) => line.measure().row);
  expect(lines.map(({ feature, model, sums }) => [feature, model, sums.n])).toEqual([
    ["next_color", "k7@1", 5n],
    ["next_color", "k7@2", 10n],
    ["window:pink:80", "k7@1", 5n],
    ["window:pink:80", "k7@2", 10n],
  ]);
});

/** A row as the database lists it: the live model last. */
function rowOf(model: string, n: number): PublishedAccuracy {
  return {
    tableId: 1,
    model,
    feature: "next_color",
    period: "30d",
    start: "2026-10-22T00:00:00.0000000Z",
    end: "2026-11-21T00:00:00.0000000Z",
    asOf: null,
    asOfRoundId: null,
    asOfSeq: 0,
    changedMs: 0,
    version: 1n,
    sums: { ...emptySums(), forecasts: BigInt(n), n: BigInt(n) },
    references: emptyReferenceSums(),
  };
}

/** A table in memory after these rows were read. */
function tableWith(rows: readonly PublishedAccuracy[]): Table {
  const holding = emptyHolding();
  const table: Table = {
    id: 1,
    house: { id: "acme", name: "Acme", simulated: false, enabled: true, paused: false, newestPolledMs: null },
    game: "crash",
    market: "global",
    position: 0,
    place: 0,
    enabled: true,
    resets: 0,
    lastSeq: 0,
    lastRoundAt: null,
    continuityText: null,
    published: null,
    calibration: null,
    reading: null,
    readingAt: null,
    delayedReadings: [],
    generatedAt: "2026-11-21T00:00:00.0000000Z",
    lastPolledMs: null,
    newestSeq: null,
    isLate: false,
    accuracy: [],
    rounds: NO_ROUNDS,
    setsUpTo: 0,
    issued: NOTHING_ISSUED,
    headVersion: 0,
    accuracyVersion: 0,
    version: 0,
  };
  holding.byId.set(table.id, table);
  const accuracy = new Map([[table.id, { version: 1, rows }]]);
  applyReading(
    holding,
    { houses: null, heads: [], sets: new Map(), replaced: new Set(), rounds: new Map(), accuracy },
    10,
  );
  return table;
}

it("a plot of skills names the model of lines that have the same name, and of no other", () => {
  const measured = (model: string, name: string) => {
    const found = measureTable(tableWith([rowOf(model, 900)]), { feature: "next_color", period: "30d" })!;
    return { ...found, name, figures: { ...found.figures, skill: 0.01 } };
  };
  const [first, second] = [`k7@1-${HASH.first}`, `k7@1-${HASH.second}`];
  const lines = [measured(first, "acme/crash/a"), measured(second, "acme/crash/a"), measured(first, "acme/crash/b")];
  const { plot, rows } = skillsOf(lines)!;
  const names = [`acme/crash/a, ${first}`, `acme/crash/a, ${second}`, "acme/crash/b"];
  expect(rows.map(([name]) => name)).toEqual(names);
  for (const name of names) expect(JSON.stringify(plot.spec)).toContain(`"${name}, 900 scored"`);
});
