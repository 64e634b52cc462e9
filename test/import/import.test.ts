import { beforeEach, describe, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import { SALT, TERMINATING_HASH } from "../../src/demo/bustabit-v2.ts";
import { createTrueChain } from "../../src/demo/true-chain.ts";
import { dateShape, timesOf } from "../../src/cli/import/times.ts";
import { multiplierShape, multipliersOf } from "../../src/cli/import/values.ts";
import { MOST_LISTED } from "../../src/import/refusals.ts";
import { createPasses } from "../../src/pass/passes.ts";
import { repairTable } from "../../src/verify/repair.ts";
import { verify } from "../../src/verify/verify.ts";
import { generatedRounds } from "../forecasts/streams.ts";
import { createWorld } from "../forecasts/world.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { feedEntry, forgetHouses } from "../support/houses.ts";
import { type ChangedImport, importFile, type Row } from "../support/import-file.ts";
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

const { sql, pipeline: passes } = await openTestDatabase();
beforeEach(async () => {
  await sql`delete from gaps`;
  await sql`delete from conflicts`;
  await forgetHouses(sql);
});

const importRows = (table: MadeTable, rows: readonly Row[], changed?: ChangedImport) =>
  importFile(sql, table, rows, changed);

async function poll(table: MadeTable, second: number, ...ids: number[]): Promise<void> {
  await makePayload(sql, table, { second, items: ids.map((id) => makeItem(id, (100 + (id % 90)) / 100)) });
  await normalizeRounds.run({ house: table.house }, testContext(sql, { passes: createPasses(passes) }).context);
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
    expect(imported).toMatchObject({ read: 3, inserted: 3, skipped: 0, refused: [] });
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
    const [row] = await sql`select last_seq, last_polled_round_at from table_heads`;
    expect(row).toEqual({ last_seq: 3n, last_polled_round_at: null });
  });

  it("stores them by time if ids are opaque, and as listed if a time is missing", async () => {
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

  it("continues seamlessly with the house's own rounds", async () => {
    const table = await makeTable(sql);
    await importRows(table, rowsOf(1, 2, 3));
    await poll(table, 0, 5, 4, 3);
    expect((await storedRounds(sql, table)).map(({ id, late, gap }) => [id, late, gap])).toEqual(
      ["1", "2", "3", "4", "5"].map((id) => [id, false, false]),
    );
  });

  it("reports numbers that the file does not have, and does not request them from the house", async () => {
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

  it("reports that its connection was lost, and stores nothing", async () => {
    const table = await makeTable(sql);
    const rows = rowsOf(...Array.from({ length: 6_000 }, (_, n) => n + 1));
    let imported: Promise<unknown> | undefined;
    await sql.begin(async (tx) => {
      await tx`lock table rounds in share mode`; // its COPY waits
      imported = importRows(table, rows);
      imported.catch(() => undefined);
      await lockWaits(sql, 1);
      const ended = await sql`
        select pg_terminate_backend(pid)
        from pg_stat_activity
        where datname = current_database()
          and query like '%copy rounds%'
          and pid <> pg_backend_pid()`;
      expect(ended).toHaveLength(1);
    });
    await expect(imported).rejects.toThrow(/connection to PostgreSQL was lost|terminating connection/);
    expect(await storedRounds(sql, table)).toEqual([]);
  });

  it("stores more rounds than one COPY has, also if a line of its last pass is refused", async () => {
    const table = await makeTable(sql, { round_ids: "opaque" });
    const rows = rowsOf(...Array.from({ length: 105_000 }, (_, n) => n + 1));
    rows.splice(99_000, 1, ["5", "77.77"]);
    expect(await importRows(table, rows, { order: "newest_last" })).toMatchObject({
      inserted: 104_999,
      refusedCount: 1,
    });
    expect(await followChain(sql, table)).toBe(104_999);
  });
});

describe("an id that many rows have", () => {
  it.each(["consecutive", "opaque"])("is one round, wherever they stand, tried or stored: %s", async (round_ids) => {
    const table = await makeTable(sql, { round_ids });
    const same = Array.from({ length: 10_500 }, () => 2);
    const rows: Row[] = [...rowsOf(1, ...same, 3), ["2", "9.99"], ...rowsOf(4, 1)];
    const expected = { read: 10_505, inserted: 4, skipped: 10_500, refusedCount: 1 };
    const survey = { repeats: { inFile: 10_500, stored: 0 } };
    expect(await importRows(table, rows, { dryRun: true })).toMatchObject({ ...expected, survey });
    expect(await importRows(table, rows)).toMatchObject({ ...expected, survey });
    expect((await storedRounds(sql, table)).map(({ id }) => id)).toEqual(["1", "2", "3", "4"]);
    expect(await followChain(sql, table)).toBe(4);
  });
});

describe("an import into a table with rounds", () => {
  it("refuses lines that contradict stored rounds, and leaves the scores of the table's forecasts as they are", async () => {
    const world = await createWorld();
    await world.play(
      generatedRounds(30).map(({ hundredths }) => hundredths),
      world.tableId,
      { atOnce: 1 },
    );
    const table = { id: world.tableId, name: world.tableName, house: world.house };
    const stored = await world.sql<{ id: string; x: string }[]>`
      select round_id as id, hundredths::text as x
      from rounds
      where table_id = ${table.id}`;
    const wrong = stored.map(({ id, x }): Row => [id, x]); // hundredths, without the scale of the file
    const facts = () => world.sql`
      select
        (select count(*)::integer from score_revisions where table_id = ${table.id}) as revisions,
        (select count(*)::integer from conflicts where table_id = ${table.id}) as conflicts`;
    for (const dryRun of [true, false]) {
      const imported = await importFile(world.sql, table, wrong, { dryRun });
      expect(imported).toMatchObject({ inserted: 0, skipped: 0, refusedCount: 30 });
    }
    expect(await facts()).toEqual([{ revisions: 0, conflicts: 0 }]);
  });

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

  it("that is stopped in the middle has reported what it stored, and a repeat continues there", async () => {
    const table = await makeTable(sql);
    await poll(table, 0, 1);
    await poll(table, 1, 6_002);
    await poll(table, 2, 6_003, 6_002);
    const rows = rowsOf(...Array.from({ length: 6_000 }, (_, n) => n + 2));
    const stop = new AbortController();
    const progress = () => stop.abort(new Error("interrupted"));
    await expect(importRows(table, rows, { signal: stop.signal, progress })).rejects.toThrow("interrupted");
    expect(await openNotices(sql, table)).toMatchObject({
      gap: expect.stringMatching(/^1000 of the rounds 2 to 6001 are missing/),
    });
    expect(await importRows(table, rows)).toMatchObject({ inserted: 1_000, skipped: 5_000 });
    expect(await openNotices(sql, table)).toEqual({});
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
      { line: 3, reason: "expected a round_id, found nothing" },
      { line: 4, reason: 'expected a whole number without leading zeros as round_id, found "x"' },
      { line: 5, reason: expect.stringMatching(/^expected 1\.00 or more/) },
      { line: 6, reason: expect.stringMatching(/^expected a multiplier/) },
      { line: 7, reason: expect.stringMatching(/^expected a multiplier/) },
      { line: 8, reason: expect.stringMatching(/^expected a time as occurred_at/) },
      { line: 9, reason: expect.stringMatching(/^expected a hash of 64/) },
      { line: 12, reason: expect.stringMatching(/at most 2026-11-22T04:00:00.000Z, found 2026-11-22T04:00:01/) },
    ]);
    expect((await storedRounds(sql, table)).map(({ id, x }) => [id, x])).toEqual([
      ["1", 1.5],
      ["7", 1],
      ["8", 1.5],
    ]);
  });

  it("that repeats another is skipped, and with another result is refused; the first line is kept", async () => {
    const table = await makeTable(sql);
    const imported = await importRows(table, [
      ["1", "1.50"],
      ["1", "1.5x"],
      ["1", "2.00"],
    ]);
    const reason = "expected one result per round, found 2.00 for round 1, which another line has with 1.50";
    expect(imported).toMatchObject({ read: 3, inserted: 1, skipped: 1, refused: [{ line: 4, reason }] });
    expect(await storedRounds(sql, table)).toMatchObject([{ id: "1", x: 1.5 }]);
    expect(await openNotices(sql, table)).not.toHaveProperty("conflict");
  });

  it("with times in another zone is read with the given zone", async () => {
    const table = await makeTable(sql);
    const at = "2026-11-21T05:00:00Z";
    await importRows(table, [["1", "1.50", "6 o'clock"]], { readTime: () => ({ ms: Date.parse(at), iso: at }) });
    const [round] = await sql`select occurred_at from rounds`;
    expect(round).toEqual({ occurred_at: new Date(at) });
  });
});

describe("a time before 2010", () => {
  it.each([
    ["45987", "1970-01-01T12:46:27Z"],
    ["20261121", "1970-08-23T12:05:21Z"],
    ["0", "1970-01-01T00:00:00Z"],
    ["2009-12-31T23:59:59Z", "2009-12-31T23:59:59Z"],
  ])("is refused, since no crash game is as old: %s", async (text, iso) => {
    const table = await makeTable(sql, { round_ids: "opaque" });
    const rows: Row[] = [
      ["a", "1.50", "2010-01-01T00:00:00Z"],
      ["b", "1.50", text],
    ];
    expect(await importRows(table, rows)).toMatchObject({
      inserted: 1,
      refused: [
        {
          line: 3,
          reason: `expected a time of 2010 or later as occurred_at, found ${iso}, read from "${text}"; write times in ISO 8601, or as seconds since 1970`,
        },
      ],
    });
  });
});

describe("a file that lists the newest first", () => {
  it("is read from its end; of two results for a round the one listed first is kept", async () => {
    const at = (second: number) => `2026-11-21T04:00:0${second}Z`;
    const other = await makeTable(sql, { round_ids: "opaque" });
    const rows: Row[] = [
      ["f", "bad", at(6)],
      ["e", "1.50", at(5)],
      ["d", "1.40", at(4)],
      ["c", "1.30"],
      ["b", "1.20", at(2)],
      ["a", "1.10", at(1)],
      ["e", "1.55", at(0)],
    ];
    const reversed = await importRows(other, rows);
    expect(reversed.survey).toMatchObject({
      ids: { from: "a", missing: null },
      times: { from: at(0), to: at(5) },
      withoutTime: 1,
      order: { listed: "newest_first", takenBy: "file", isReversed: true },
    });
    expect(reversed.refused.at(-1)).toMatchObject({ line: 8, reason: expect.stringContaining("found 1.55") as string });
    expect((await storedRounds(sql, other)).map(({ id, x }) => [id, x])).toEqual([
      ["a", 1.1],
      ["b", 1.2],
      ["c", 1.3],
      ["d", 1.4],
      ["e", 1.5],
    ]);
    expect(await importRows(other, rows)).toMatchObject({ inserted: 0, skipped: 5, refusedCount: 2 });
  });
});

describe("a file without ids", () => {
  const row = (n: number): Row => [String(n), value(n)];

  it.each([
    ["opaque", "row-", 1n, ["row-1", "row-2", "row-3"]],
    ["consecutive", "", 7n, ["7", "8", "9"]],
  ] as const)("gets the numbers of its rows, in a table of %s ids", async (roundIds, prefix, first, ids) => {
    const table = await makeTable(sql, { round_ids: roundIds });
    const rows = [row(1), row(2), row(3)];
    const rowNumbers = { prefix, first };
    expect(await importRows(table, rows, { rowNumbers })).toMatchObject({ inserted: 3 });
    expect((await storedRounds(sql, table)).map(({ id }) => id)).toEqual(ids);
    const longer = await importRows(table, [...rows, row(4)], { rowNumbers });
    expect(longer).toMatchObject({ inserted: 1, skipped: 3 });
  });

  it("is numbered from its end if that is the oldest, so that it may grow at its head; a bad row has its number too", async () => {
    const table = await makeTable(sql, { round_ids: "opaque" });
    const rowNumbers = { prefix: "r", first: 1n };
    const order = "newest_first";
    const rows: Row[] = [
      ["1", "1.30"],
      ["2", "bad"],
      ["3", "1.10"],
    ];
    await importRows(table, rows, { rowNumbers, order });
    const stored = (await storedRounds(sql, table)).map(({ id, x }) => [id, x]);
    expect(stored).toEqual([
      ["r1", 1.1],
      ["r3", 1.3],
    ]);
    const grown: Row[] = [
      ["1", "1.40"],
      ["2", "1.30"],
      ["3", "1.20"],
      ["4", "1.10"],
    ];
    const again = await importRows(table, grown, { rowNumbers, order });
    expect(again).toMatchObject({ inserted: 2, skipped: 2, refusedCount: 0 });
  });

  it("keeps a block that was entered twice, because it cannot be distinguished from new rounds", async () => {
    const table = await makeTable(sql, { round_ids: "opaque" });
    const block = Array.from({ length: 10 }, (_, n) => value(n));
    const rows = [...block, ...block].map((x, n): Row => [String(n + 1), x]);
    const rowNumbers = { prefix: "row-", first: 1n };
    expect(await importRows(table, rows, { rowNumbers })).toMatchObject({ inserted: 20, skipped: 0 });
  });
});

describe("a multiplier with three digits after a mark", () => {
  const rows: Row[] = [
    ["1", "1,234"],
    ["2", "2,5"],
    ["3", "1.234"],
    ["4", "2.25"],
  ];

  it("is refused if the file has decimal commas too and no option names the decimal mark", async () => {
    const table = await makeTable(sql);
    const imported = await importRows(table, rows, { multiplierShape });
    expect(imported).toMatchObject({ read: 4, inserted: 2 });
    expect(imported.refused).toMatchObject([
      { line: 2, reason: expect.stringContaining('found "1,234": line 3 has a decimal comma') },
      { line: 4, reason: expect.stringContaining("state the decimal mark") },
    ]);
  });

  it("is refused in a file with more of them than a call takes arguments", async () => {
    const table = await makeTable(sql);
    const many = Array.from({ length: 150_000 }, (_, n): Row => [`${n + 2}`, "1,870"]);
    const imported = await importRows(table, [["1", "2,04"], ...many], { multiplierShape, dryRun: true });
    expect(imported).toMatchObject({ read: 150_001, inserted: 1 });
    expect(imported.refusedCount).toBe(150_000);
    expect(imported.refused, "the first of a reason alone are kept in memory").toHaveLength(MOST_LISTED);
    expect(imported.refused.at(-1)?.line).toBe(10_002);
  });

  it("is read as thousands after a comma in any other file, and counted", async () => {
    const table = await makeTable(sql);
    const imported = await importRows(table, [rows[0]!, rows[3]!], { multiplierShape });
    expect(imported).toMatchObject({ inserted: 2, survey: { thousands: { count: 1, line: 2 } } });
    expect(await storedRounds(sql, table)).toMatchObject([{ x: 1234 }, { x: 2.25 }]);
  });
});

describe("a date with slashes and AM or PM", () => {
  const read = { readTime: timesOf({ zone: null, dates: "auto" }), dateShape };

  it("is refused if another line of the file proves that the day is first", async () => {
    const table = await makeTable(sql, { round_ids: "opaque" });
    const rows: Row[] = [
      ["a", "1.50", "04/11/2024, 1:21:03 pm"],
      ["b", "1,5", "2024-11-05T13:21:03Z"],
      ["c", "1,234", "12/11/2024, 1:21:03 pm"],
      ["d", "1.50", "25/11/2024, 1:21:03 pm"],
    ];
    const imported = await importRows(table, rows, { ...read, multiplierShape });
    expect(imported).toMatchObject({ read: 4, inserted: 1, refusedCount: 3 });
    expect(imported.refused).toMatchObject([
      {
        line: 2,
        reason:
          "expected a date with one meaning, found 2024-04-11T13:21:03Z, read with the month first: line 5 has the day " +
          "first; state --dates day_first",
      },
      { line: 4, reason: expect.stringContaining("decimal comma") },
      { line: 5, reason: expect.stringContaining("state --dates day_first") },
    ]);
  });

  it("has the month first in any other file", async () => {
    const table = await makeTable(sql, { round_ids: "opaque" });
    const rows: Row[] = [
      ["a", "1.50", "4/11/2024, 1:21:03 PM"],
      ["b", "1.50", "4/13/2024, 1:21:03 PM"],
    ];
    expect(await importRows(table, rows, read)).toMatchObject({ inserted: 2, refusedCount: 0 });
  });
});

describe("an import with its own units, marks and instant crashes", () => {
  it("passes `verify` and `table repair`, which do not know these options", async () => {
    const table = await makeTable(sql);
    const decimal = multipliersOf({ decimal: ",", scale: 1, instant: ["bust"] });
    await importRows(
      table,
      [
        ["1", "1.234"],
        ["2", "1 234,50"],
        ["3", "bust"],
      ],
      { readMultiplier: decimal },
    );
    const hundredths = multipliersOf({ decimal: "auto", scale: 0.01, instant: [] });
    await importRows(table, [["4", "187"]], { readMultiplier: hundredths });
    expect((await storedRounds(sql, table)).map(({ x }) => x)).toEqual([1234, 1234.5, 1, 1.87]);
    expect(await verify(sql, { tableId: table.id })).toMatchObject({ ok: true, checked: { rounds: 4 } });
    expect(await sql.begin((tx) => repairTable(tx, table.id))).toMatchObject({ ok: true, rounds: 4n });
  });
});

describe("a dry run", () => {
  it("reports repeats and contradictions that are far apart in the file", async () => {
    const table = await makeTable(sql, { round_ids: "opaque" });
    await importRows(table, [
      ["stored", "1.50"],
      ["other", "1.50"],
    ]);
    const many = Array.from({ length: 6_000 }, (_, n): Row => [`id-${n}`, "2.00"]);
    const rows: Row[] = [["stored", "1.50"], ...many, ["id-0", "2.00"], ["id-1", "2.50"], ["other", "1.60"]];
    const expected = {
      read: 6_004,
      inserted: 6_000,
      skipped: 2,
      survey: { repeats: { inFile: 1, stored: 1 } },
      refused: [
        {
          line: 6004,
          reason: "expected one result per round, found 2.50 for round id-1, which another line has with 2.00",
        },
        {
          line: 6005,
          reason: "expected the stored result of the round, found 1.60 for round other, which is stored with 1.50",
        },
      ],
    };
    expect(await importRows(table, rows, { dryRun: true })).toMatchObject(expected);
    expect(await importRows(table, rows)).toMatchObject(expected);
  });

  it("waits for no other writer of the table, and delays none", async () => {
    const table = await makeTable(sql);
    await sql.begin(async (transaction) => {
      await transaction`select 1 from table_heads where table_id = ${table.id} for no key update`;
      expect(await importRows(table, rowsOf(1, 2, 3), { dryRun: true })).toMatchObject({ inserted: 3 });
    });
  });

  it.each([
    ["into an empty table", false],
    ["into a table with rounds", true],
  ])("%s reports the result, and stores nothing", async (_, filled) => {
    const table = await makeTable(sql);
    if (filled) await poll(table, 0, 1);
    const before = await sql`select * from table_heads`;
    const imported = await importRows(table, [...rowsOf(1, 2, 3, 3), ["x", "1"]], { dryRun: true });
    expect(imported).toMatchObject(filled ? { inserted: 2, skipped: 2 } : { inserted: 3, skipped: 1 });
    expect(imported.refused).toHaveLength(1);
    expect(await sql`select * from table_heads`).toEqual(before);
    expect(await sql`select from gaps`).toHaveLength(0);
  });
});

describe("an import of proven rounds", () => {
  it("verifies each, and the newest becomes the anchor", async () => {
    const table = await makeTable(sql, FAIR);
    expect(await importRows(table, await trueRows(17_000, 2_001))).toMatchObject({ inserted: 15_000, refused: [] });
    const unproven = await sql`select from rounds where verified is not true`;
    expect(unproven).toHaveLength(0);
    expect(await sql`select proof_number from table_heads`).toEqual([{ proof_number: 17_000n }]);
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
    expect(await sql`select proof_number from table_heads`).toEqual([{ proof_number: 30_000n }]);
    expect(await sql`select from rounds where verified is not true`).toHaveLength(0);
  });
});
