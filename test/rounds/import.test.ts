import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { SALT, TERMINATING_HASH } from "../../src/houses/demo/bustabit-v2.ts";
import { createTrueChain } from "../../src/houses/demo/true-chain.ts";
import { createProver } from "../../src/houses/fairness/prove.ts";
import { settingsOf } from "../../src/houses/house.ts";
import { loadHouse } from "../../src/houses/store.ts";
import { copyToStaging, createStaging, dropStaging } from "../../src/rounds/import-store.ts";
import { importRounds, type Imported, type ImportOptions } from "../../src/rounds/import.ts";
import { testContext } from "../support/context.ts";
import { createDatabase } from "../support/database.ts";
import { feedEntry, forgetHouses } from "../support/houses.ts";
import {
  followChain,
  makeItem,
  makePayload,
  makeTable,
  openNotices,
  storedRounds,
  type MadeTable,
} from "../support/make.ts";

const FAIR = {
  feed: feedEntry({ hash: "hash" }),
  fairness: { scheme: "bustabit", salt: SALT, terminating_hash: TERMINATING_HASH },
};
const games = createTrueChain(new AbortController().signal);

/** round_id, multiplier, occurred_at, hash. */
type Row = [string | null, string | null, (string | null)?, (string | null)?];

let database: Awaited<ReturnType<typeof createDatabase>>;
let sql: Sql;
beforeAll(async () => {
  database = await createDatabase();
  sql = connect(database.url, { name: "test" });
});
beforeEach(async () => {
  await sql`delete from gaps`;
  await sql`delete from conflicts`;
  await forgetHouses(sql);
});
afterAll(async () => {
  await sql.end();
  await database.drop();
});

/** Imports rows as lines 2, 3 … of a file. */
async function importRows(
  table: MadeTable,
  rows: readonly Row[],
  changed: Partial<ImportOptions> = {},
): Promise<Imported> {
  const house = await loadHouse(sql, () => undefined, table.house);
  const settings = house === null ? null : settingsOf(house, { game: "crash", market: "global" });
  if (settings === null) throw new Error("the table has no settings");
  const staging = await createStaging(sql);
  try {
    const lines = rows.map((row, place) =>
      [place + 2, ...Array.from({ length: 4 }, (_, n) => row[n] ?? "\\N")].join("\t"),
    );
    await pipeline(Readable.from([lines.map((line) => `${line}\n`).join("")]), await copyToStaging(sql, staging));
    const signal = new AbortController().signal;
    return await importRounds(sql, table.id, staging, {
      settings,
      prover: createProver(),
      dryRun: false,
      signal,
      now: Date.parse("2026-11-21T04:00:00Z"),
      ...changed,
    });
  } finally {
    await dropStaging(sql, staging);
  }
}

async function poll(table: MadeTable, second: number, ...ids: number[]): Promise<void> {
  await makePayload(sql, table, { second, items: ids.map((id) => makeItem(id, (100 + (id % 90)) / 100)) });
  await normalizeRounds.run({ house: table.house }, testContext(sql).context);
}

const value = (id: number) => ((100 + (id % 90)) / 100).toFixed(2);
const rowsOf = (...ids: number[]): Row[] => ids.map((id) => [String(id), value(id)]);

async function trueRows(newest: number, oldest: number): Promise<Row[]> {
  const listed = await games({ newest, oldest });
  return listed.map(({ id, hundredths, hash }) => [String(id), (hundredths / 100).toFixed(2), null, hash]);
}

describe("an import into an empty table", () => {
  it("takes the rounds by number, whatever their order in the file, and none is late", async () => {
    const table = await makeTable(sql);
    const imported = await importRows(table, rowsOf(3, 1, 2));
    expect(imported).toEqual({ read: 3, inserted: 3, skipped: 0, conflicts: 0, refused: [] });
    expect(await storedRounds(sql, table)).toEqual(
      [1, 2, 3].map((id) => ({
        id: String(id),
        x: Number(value(id)),
        late: false,
        gap: false,
        source: "import",
        verified: null,
      })),
    );
    expect(await followChain(sql, table)).toBe(3);
    const [row] = await sql`select last_seq, last_polled_round_at from published_now`;
    expect(row).toEqual({ last_seq: 3n, last_polled_round_at: null });
  });

  it("takes them by time where ids tell nothing, and as listed where a time is missing", async () => {
    const timed = await makeTable(sql, { round_ids: "opaque" });
    await importRows(timed, [
      ["c", "1.30", "2026-11-21T04:00:02Z"],
      ["a", "1.10", "1795233600"],
      ["b", "1.20", "2026-11-21T04:00:01Z"],
    ]);
    expect((await storedRounds(sql, timed)).map(({ id }) => id)).toEqual(["a", "b", "c"]);
    await forgetHouses(sql);
    const listed = await makeTable(sql, { round_ids: "opaque" });
    await importRows(listed, [
      ["c", "1.30", "2026-11-21T04:00:02Z"],
      ["a", "1.10"],
      ["b", "1.20", "2026-11-21T04:00:01Z"],
    ]);
    expect((await storedRounds(sql, listed)).map(({ id, late, gap }) => [id, late, gap])).toEqual([
      ["c", false, false],
      ["a", false, false],
      ["b", false, false],
    ]);
  });

  it("goes on seamlessly with the house's own rounds", async () => {
    const table = await makeTable(sql);
    await importRows(table, rowsOf(1, 2, 3));
    await poll(table, 0, 5, 4, 3);
    expect((await storedRounds(sql, table)).map(({ id, late, gap }) => [id, late, gap])).toEqual(
      ["1", "2", "3", "4", "5"].map((id) => [id, false, false]),
    );
  });

  it("tells of numbers that the file does not have, and does not ask the house for them", async () => {
    const table = await makeTable(sql);
    await importRows(table, rowsOf(1, 5));
    expect((await storedRounds(sql, table)).map(({ gap }) => gap)).toEqual([false, true]);
    expect(await sql`select missing, state, reason from gaps`).toEqual([
      { missing: 3n, state: "given_up", reason: "the imported file does not have them" },
    ]);
  });

  it("is all or nothing", async () => {
    const table = await makeTable(sql);
    const stop = new AbortController();
    const rows = rowsOf(...Array.from({ length: 11_000 }, (_, n) => n + 1));
    const progress = () => stop.abort(new Error("interrupted"));
    await expect(importRows(table, rows, { signal: stop.signal, progress })).rejects.toThrow("interrupted");
    expect(await storedRounds(sql, table)).toEqual([]);
    expect(await followChain(sql, table)).toBe(0);
  });
});

describe("an import into a table with rounds", () => {
  it("stores late rounds only, fills gaps, and leaves the live rounds as they are", async () => {
    const table = await makeTable(sql);
    await poll(table, 0, 6, 2);
    expect(await openNotices(sql, table)).toHaveProperty("gap");
    const imported = await importRows(table, rowsOf(1, 2, 3, 4, 5, 7));
    expect(imported).toMatchObject({ read: 6, inserted: 5, skipped: 1 });
    expect((await storedRounds(sql, table)).map(({ id, late }) => [id, late])).toEqual([
      ["2", false],
      ["6", false],
      ["1", true],
      ["3", true],
      ["4", true],
      ["5", true],
      ["7", true],
    ]);
    expect(await sql`select state, filled from gaps`).toEqual([{ state: "filled", filled: 3n }]);
    expect(await openNotices(sql, table)).toEqual({});
    await poll(table, 1, 9, 8, 7, 6);
    const added = (await storedRounds(sql, table)).slice(7);
    expect(added.map(({ id, late, gap }) => [id, late, gap])).toEqual([
      ["8", false, true],
      ["9", false, false],
    ]);
    expect(await sql`select state from gaps`).toEqual([{ state: "filled" }, { state: "filled" }]);
    await followChain(sql, table);
  });

  it("a second time adds none; 12,000 rounds go over several transactions", async () => {
    const table = await makeTable(sql);
    await poll(table, 0, 1);
    const rows = rowsOf(...Array.from({ length: 12_000 }, (_, n) => n + 1));
    expect(await importRows(table, rows)).toMatchObject({ read: 12_000, inserted: 11_999, skipped: 1 });
    expect(await importRows(table, rows)).toMatchObject({ read: 12_000, inserted: 0, skipped: 12_000 });
    expect(await followChain(sql, table)).toBe(12_000);
  });

  it("while the house is polled at the same time, each round is stored once", async () => {
    const table = await makeTable(sql);
    await poll(table, 0, 1);
    const rows = rowsOf(...Array.from({ length: 12_000 }, (_, n) => n + 1));
    const polls = (async () => {
      for (let second = 1; second < 40; second += 1) await poll(table, second, second * 10, second * 10 - 5);
    })();
    await Promise.all([importRows(table, rows), polls]);
    expect(await followChain(sql, table)).toBe(12_000);
  });
});

describe("a line of an import", () => {
  it("is refused with its number and the reason, and does not stop the others", async () => {
    const table = await makeTable(sql, { feed: feedEntry({ instant: ["0"] }) });
    const imported = await importRows(table, [
      ["1", "1.50"],
      [null, "1.50"],
      ["x", "1.50"],
      ["2", "0.50"],
      ["3", "abc"],
      ["4", null],
      ["5", "1.50", "yesterday"],
      ["6", "1.50", null, "12ab"],
      ["7", "0.00"],
      ["8", "1.50", "2026-11-22T04:00:00Z"],
      ["9", "1.50", "2026-11-22T04:00:01Z"],
    ]);
    expect(imported).toMatchObject({ read: 11, inserted: 3, skipped: 0 });
    expect(imported.refused).toEqual([
      { line: 3, reason: "expected a round_id, came nothing" },
      { line: 4, reason: 'expected a whole number without leading zeros as round_id, came "x"' },
      { line: 5, reason: expect.stringMatching(/^expected 1\.00 or more/) },
      { line: 6, reason: expect.stringMatching(/^expected a multiplier/) },
      { line: 7, reason: expect.stringMatching(/^expected a multiplier/) },
      { line: 8, reason: expect.stringMatching(/^expected a time as occurred_at/) },
      { line: 9, reason: expect.stringMatching(/^expected a hash of 64/) },
      { line: 12, reason: expect.stringMatching(/at most 2026-11-22T04:00:00.000Z, came 2026-11-22T04:00:01/) },
    ]);
    expect((await storedRounds(sql, table)).map(({ id, x }) => [id, x])).toEqual([
      ["1", 1.5],
      ["7", 1],
      ["8", 1.5],
    ]);
  });

  it("that repeats another is skipped, and with another result is a conflict; the first line is kept", async () => {
    const table = await makeTable(sql);
    const imported = await importRows(table, [
      ["1", "1.50"],
      ["1", "1.5x"],
      ["1", "2.00"],
    ]);
    expect(imported).toEqual({ read: 3, inserted: 1, skipped: 1, conflicts: 1, refused: [] });
    expect(await storedRounds(sql, table)).toMatchObject([{ id: "1", x: 1.5 }]);
    expect(await openNotices(sql, table)).toHaveProperty("conflict");
  });

  it("with times in another zone is read as it is told to", async () => {
    const table = await makeTable(sql);
    const at = "2026-11-21T05:00:00Z";
    await importRows(table, [["1", "1.50", "6 o'clock"]], { readTime: () => ({ ms: Date.parse(at), iso: at }) });
    const [round] = await sql`select occurred_at from rounds`;
    expect(round).toEqual({ occurred_at: new Date(at) });
  });
});

describe("a dry run", () => {
  it.each([
    ["into an empty table", false],
    ["into a table with rounds", true],
  ])("%s tells what would be, and stores nothing", async (_, filled) => {
    const table = await makeTable(sql);
    if (filled) await poll(table, 0, 1);
    const before = await sql`select * from tables`;
    const imported = await importRows(table, [...rowsOf(1, 2, 3, 3), ["x", "1"]], { dryRun: true });
    expect(imported).toMatchObject(filled ? { inserted: 2, skipped: 2 } : { inserted: 3, skipped: 1 });
    expect(imported.refused).toHaveLength(1);
    expect(await sql`select * from tables`).toEqual(before);
    expect(await sql`select from gaps`).toHaveLength(0);
  });
});

describe("an import of proven rounds", () => {
  it("verifies each, and the newest becomes the anchor", async () => {
    const table = await makeTable(sql, FAIR);
    expect(await importRows(table, await trueRows(17_000, 2_001))).toMatchObject({ inserted: 15_000, refused: [] });
    const unproven = await sql`select from rounds where verified is not true`;
    expect(unproven).toHaveLength(0);
    expect(await sql`select proof_number from tables`).toEqual([{ proof_number: 17_000n }]);
  });

  it("refuses a line whose proof fails, and leaves one without a hash unproven", async () => {
    const table = await makeTable(sql, FAIR);
    const [newest, wrong, bare] = await trueRows(2_003, 2_001);
    if (newest === undefined || wrong === undefined || bare === undefined) throw new Error("the chain lacks games");
    const imported = await importRows(table, [newest, ["2002", "77.77", null, wrong[3] ?? null], ["2001", bare[1]]]);
    expect(imported).toMatchObject({ inserted: 2 });
    expect(imported.refused).toMatchObject([
      { line: 3, reason: expect.stringMatching(/^the proof fails: the hash gives/) },
    ]);
    expect((await storedRounds(sql, table)).map(({ id, verified }) => [id, verified])).toEqual([
      ["2001", null],
      ["2003", true],
    ]);
    expect(await sql`select state, missing from gaps`).toEqual([{ state: "open", missing: 1n }]);
  });

  it("links rounds older than ours to the proven one above them", async () => {
    const table = await makeTable(sql, FAIR);
    await importRows(table, await trueRows(30_000, 29_991));
    expect(await importRows(table, await trueRows(20_000, 10_001))).toMatchObject({ inserted: 10_000, refused: [] });
    expect(await sql`select proof_number from tables`).toEqual([{ proof_number: 30_000n }]);
    expect(await sql`select from rounds where verified is not true`).toHaveLength(0);
  });
});
