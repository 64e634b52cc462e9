import { readdir, rm } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { createDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { feedEntry, forgetHouses, houseEntry, tableEntry } from "../support/houses.ts";
import { makeQuickFolder } from "../support/quick-folder.ts";
import { makeFile, makeFolder, roundhouse, startRoundhouse } from "./world.ts";

const TABLE = "acme/crash/global";
let database: Awaited<ReturnType<typeof createDatabase>>;
let sql: Sql;
let dataDir: string;

beforeAll(async () => {
  database = await createDatabase();
  sql = connect(database.url, { name: "test", max: 2 });
  dataDir = await makeQuickFolder("roundhouse-import-");
  return async () => {
    await sql.end();
    await database.drop();
    await rm(dataDir, { recursive: true });
  };
});

beforeEach(async () => {
  await sql.unsafe("delete from gaps; delete from conflicts");
  await forgetHouses(sql);
  const tables = [
    tableEntry({ feed: feedEntry({ instant: ["0"] }) }),
    tableEntry({ market: "opaque", round_ids: "opaque" }),
  ];
  await applyHouses(sql, [houseEntry({ id: "acme", tables, headers: { "X-Token": "${NOT_SET_HERE}" } })]);
});

const env = () => ({ DATABASE_URL: database.url, DATA_DIR: dataDir });

async function importFile(content: string | Buffer, ...more: string[]) {
  const file = await makeFile("rounds.csv", content);
  return roundhouse(["import", "--table", TABLE, "--file", file, ...more], { env: env() });
}

async function exportRounds(table = TABLE): Promise<string[][]> {
  const { code, stdout } = await roundhouse(["export", "rounds", "--table", table], { env: env() });
  expect(code).toBe(0);
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.split(","));
}

async function expectNothingStored(): Promise<void> {
  expect(await exportRounds()).toHaveLength(1);
}

function manyRounds(count: number): string {
  const lines = Array.from(
    { length: count },
    (_, n) => `${1_000_000 + n},${(1 + ((n * 7919) % 900) / 100).toFixed(2)}`,
  );
  return `round_id,multiplier\n${lines.join("\n")}\n`;
}

describe("import", () => {
  it("takes 12,000 rounds in their order, and none of them a second time", async () => {
    const content = manyRounds(12_000);
    const first = await importFile(content, "--json");
    const counts = { read: 12_000, refused: [], refused_count: 0 };
    expect(JSON.parse(first.stdout)).toEqual({ ...counts, late: false, inserted: 12_000, skipped: 0 });
    expect(first.code).toBe(0);
    const again = await importFile(gzipSync(content), "--json");
    expect(JSON.parse(again.stdout)).toEqual({ ...counts, late: true, inserted: 0, skipped: 12_000 });

    const [header, ...rows] = await exportRounds();
    expect(header?.join(",")).toBe(
      "seq,round_id,multiplier,color,occurred_at,requested_at,received_at,source,verified,late,after_gap,hundredths,absent_at,history_hash",
    );
    expect(rows.map(([seq]) => seq)).toEqual(rows.map((_, n) => `${n + 1}`));
    expect(rows[7919]?.slice(1, 6)).toEqual(["1007919", "4.61", "purple", "", ""]);
    expect(rows[7919]?.slice(7, 11)).toEqual(["import", "", "false", "false"]);
  });

  it("takes back what was exported", async () => {
    await importFile("round_id,multiplier,occurred_at\n812,1.87,2026-11-20T04:00:12.123456Z\n813,2,\n");
    const exported = await exportRounds();
    const file = await makeFile("rounds.csv", exported.map((row) => row.join(",")).join("\n"));
    const other = "acme/crash/opaque";
    const { stdout } = await roundhouse(["import", "--table", other, "--file", file, "--json"], { env: env() });
    expect(JSON.parse(stdout)).toMatchObject({ read: 2, inserted: 2, refused: [] });
    const facts = (rows: string[][]) => rows.map((row) => row.slice(1, 5));
    expect(facts(await exportRounds(other))).toEqual(facts(exported));
  });

  it("finds its columns in any order, and names ignored ones on stderr alone", async () => {
    const content = "note,multiplier,occurred_at,round_id\nx,1.87,2026-11-20T04:00:12.123456Z,812\n,0,,813\n";
    const { code, stdout, stderr } = await importFile(content, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      late: false,
      read: 2,
      inserted: 2,
      skipped: 0,
      refused: [],
      refused_count: 0,
    });
    expect(stderr).toContain("ignored: note");
    const [, ...rows] = await exportRounds();
    expect(rows.map((row) => row.slice(0, 5))).toEqual([
      ["1", "812", "1.87", "blue", "2026-11-20T04:00:12.1234560Z"],
      ["2", "813", "1.00", "blue", ""], // the table declares "0" an instant crash
    ]);
  });

  it("lists each bad line with its reason and takes all others", async () => {
    const lines = ["round_id,multiplier", "1,1.5", "2,0.5", "3", '4,"1.5', "x,2", ",2", "7,∞", "8,1e308", "9,9.99"];
    const { code, stdout } = await importFile(lines.join("\n"), "--json");
    expect(code).toBe(0);
    const result = JSON.parse(stdout) as { refused: { line: number; reason: string }[] };
    expect(result).toMatchObject({ read: 9, inserted: 2, skipped: 0 });
    expect(result.refused.map(({ line }) => line)).toEqual([3, 4, 5, 6, 7, 8, 9]);
    expect(result.refused[0]?.reason).toContain("expected 1.00 or more, found");
    expect(result.refused[1]?.reason).toBe("expected 2 fields as in the header, found 1");
    expect((await exportRounds()).slice(1).map(([, id]) => id)).toEqual(["1", "9"]);
  });

  it("keeps the first result of a round and refuses a line with another one", async () => {
    await importFile("round_id,multiplier\n1,1.5\n2,2.5\n");
    const { stdout } = await importFile("round_id,multiplier\n1,1.6\n2,2.5\n", "--json");
    expect(JSON.parse(stdout)).toMatchObject({ read: 2, inserted: 0, skipped: 1, refused: [{ line: 2 }] });
    expect((await exportRounds())[1]?.[2]).toBe("1.50");
  });

  it("refuses an id that is a time, also as the only one of a file", async () => {
    await importFile("round_id,multiplier\n1,1.5\n2,2.5\n");
    const { stdout } = await importFile("round_id,multiplier\n1732723200000,1.6\n", "--json");
    const reason = "expected an id near the others, found one more than 10,000,000 above the highest before it, 2";
    expect(JSON.parse(stdout)).toMatchObject({ read: 1, inserted: 0, refused: [{ line: 2, reason }] });
    const unclear = await importFile("round_id;multiplier\n3;1,5\n1732723200000;1,234\n4;2,5\n", "--json");
    expect(JSON.parse(unclear.stdout)).toMatchObject({ read: 3, inserted: 2, refused_count: 1 });
  });

  it("stores nothing in a dry run, and counts as if it had", async () => {
    const { stdout, code } = await importFile("round_id,multiplier\n1,1.5\n2,0.1\n", "--dry-run");
    expect(code).toBe(0);
    expect(stdout).toContain("read 2, inserted 1, skipped 0 that were there, refused 1 (dry run");
    expect(stdout).toContain("line 3: expected 1.00 or more");
    await expectNothingStored();
  });

  it.each(["--dry-run", "--json"])("states whether its rounds are late or on time (%s)", async (option) => {
    const states = async () => (await importFile("round_id,multiplier\n1,1.5\n", option)).stdout;
    const [onTime, late] =
      option === "--json"
        ? ['"late":false', '"late":true']
        : [
            "on time: the table was empty, and its live model learns them",
            "late: the table had rounds; these are shown, and never used for the live model, a forecast or a score",
          ];
    expect(await states()).toContain(onTime);
    await importFile("round_id,multiplier\n2,1.5\n");
    expect(await states()).toContain(late);
  });

  it("reads times without a zone as UTC, or in the zone that is given", async () => {
    const rows = ["1,2,2025-07-01 12:00:00", "2,2,2025-12-01 12:00:00.5", "3,2,2025-07-01T12:00:00Z", "4,2,1751371200"];
    const content = `round_id,multiplier,occurred_at\n${rows.join("\n")}\n`;
    await importFile(content, "--zone", "Europe/Berlin");
    expect((await exportRounds()).slice(1).map((row) => row[4])).toEqual([
      "2025-07-01T10:00:00.0000000Z",
      "2025-12-01T11:00:00.5000000Z",
      "2025-07-01T12:00:00.0000000Z",
      "2025-07-01T12:00:00.0000000Z",
    ]);
    const file = await makeFile("rounds.csv", content);
    await roundhouse(["import", "--table", "acme/crash/opaque", "--file", file], { env: env() });
    expect((await exportRounds("acme/crash/opaque"))[1]?.[4]).toBe("2025-07-01T12:00:00.0000000Z");
    expect(await importFile(content, "--zone", "Europe/Bärlin")).toMatchObject({ code: 2 });
  });

  it("tries out a file of a foreign form: what it holds, what would be done, and why lines are refused", async () => {
    const map = await makeFile(
      "map.yaml",
      'columns: { round_id: "#", multiplier: Crash, occurred_at: When }\ndecimal: ","\nzone: Europe/Berlin\n',
    );
    const rows = [
      "#;When;Crash",
      "14;11.04.2024 13:21:43;1.234,5x",
      "13;11.04.2024 13:21:23;0,00",
      "12;11.04.2024 13:21:03;1,87",
      "12;11.04.2024 13:21:03;1,87",
      "10;31.03.2024 02:30:00;2",
      "9;yesterday;2,5",
      "10;31.03.2024 02:30:00;3,1",
      "8;;2.29\u{2028}1.29",
    ];
    const content = gzipSync(`\u{feff}${rows.join("\r\n")}\r\n`);
    const tried = await importFile(content, "--map", map, "--dry-run", "--json");
    expect(tried.code).toBe(0);
    const expected = { read: 8, inserted: 4, skipped: 1, refused_count: 3 };
    expect(JSON.parse(tried.stdout)).toMatchObject({
      ...expected,
      refused: [
        { line: 7, reason: expect.stringContaining('found "yesterday"') },
        { line: 8, reason: expect.stringContaining("found 3.10 for round 10, which another line has with 2.00") },
        { line: 9, reason: expect.stringContaining('found "2.29\\u20281.29"') },
      ],
      summary: {
        rows: 8,
        would_insert: 4,
        ids: { from: "10", to: "14", missing: 1 },
        times: { from: "2024-03-31T01:30:00Z", to: "2024-04-11T11:21:43Z", without: 0 },
        order: { listed: "newest_first", decided_by: "ids", taken_by: "number", reversed: false },
        duplicates: { in_file: 1, stored: 0 },
        refused: [
          { count: 1, lines: [7] },
          { count: 1, lines: [9] },
          { count: 1, lines: [8] },
        ],
        clock: { twice: { count: 0, line: null }, never: { count: 2, line: 6 } },
      },
    });
    expect(tried.stderr).toContain("refused 3 lines, the others are not held up by them: line 7, 8, 9");
    expect(tried.stderr).toContain("2 times never come in Europe/Berlin, when the clock is put forward (line 6)");
    const shown = await importFile(content, "--map", map, "--dry-run");
    expect(shown.stdout).toContain("the file lists the newest first (from its ids); rounds are taken by number");
    expect(shown.stdout).toContain("ids      10 to 14, oldest first; 1 number between is not in the file");
    await expectNothingStored();

    const done = await importFile(content, "--map", map, "--json");
    expect(Object.keys(JSON.parse(done.stdout) as object)).toEqual([
      "late",
      "read",
      "inserted",
      "skipped",
      "refused",
      "refused_count",
    ]);
    expect(JSON.parse(done.stdout)).toMatchObject(expected);
    expect((await exportRounds()).slice(1).map((row) => row.slice(1, 5))).toEqual([
      ["10", "2.00", "purple", "2024-03-31T01:30:00.0000000Z"],
      ["12", "1.87", "blue", "2024-04-11T11:21:03.0000000Z"],
      ["13", "1.00", "blue", "2024-04-11T11:21:23.0000000Z"], // the table declares "0" an instant crash
      ["14", "1234.50", "pink", "2024-04-11T11:21:43.0000000Z"],
    ]);
  });

  it("reads JSON lines in hundredths without ids into a table whose house is not polled, by flags", async () => {
    const tables = [tableEntry({ market: "opaque", round_ids: "opaque" })];
    await applyHouses(sql, [houseEntry({ id: "shut", enabled: false, tables })]);
    const file = await makeFile("rounds.txt", '{"d":{"c":27956}}\n{"d":{"c":150}}\n{"d":{"c":99}}\n');
    const table = ["--table", "shut/crash/opaque", "--file", file];
    const flags = ["--multiplier", "d.c", "--scale", "0.01", "--order", "newest_first"];
    const { stdout, stderr, code } = await roundhouse(
      ["import", ...table, ...flags, "--row-numbers", "x-7", "--json"],
      { env: env() },
    );
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ read: 3, inserted: 2, refused: [{ line: 3 }] });
    expect(stderr).toContain("looks like two rounds");
    expect((await exportRounds("shut/crash/opaque")).slice(1).map((row) => row.slice(1, 3))).toEqual([
      ["x-8", "1.50"],
      ["x-9", "279.56"],
    ]);
    const prefixed = await importFile("multiplier\n2\n", "--row-numbers", "x-7");
    const long = ["import", ...table, ...flags, "--row-numbers", `${"p".repeat(64)}1`];
    expect((await roundhouse(long, { env: env() })).stderr).toContain("expected an id such as row-1 of at most 64");
    expect(prefixed.code).toBe(2);
    expect(prefixed.stderr).toContain("expected a number such as 1, since this table's ids count up");
    await sql`
      update rounds
      set source = 2
      where round_id = 'x-8'`;
    const mixed = await roundhouse(["import", ...table, "--row-numbers"], { env: env() });
    expect(mixed.code).toBe(2);
    expect(mixed.stderr).toContain("has rounds with the house's own ids");
  });

  it.each([
    ["no header of ours", "id,multiplier\n1,2\n", "round_id is missing; name the column that has it: --round-id id"],
    ["Latin-1 in its last line", Buffer.from(`${manyRounds(20_000)}é,2\n`, "latin1"), "line 20002 is not UTF-8"],
  ])("refuses a file with %s whole, and stores nothing", async (_, content, expected) => {
    const { code, stdout, stderr } = await importFile(content, "--json");
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("rounds.csv cannot be imported: ");
    expect(stderr).toContain(expected);
    await expectNothingStored();
  });

  it("advises what to do about a missing file or table", async () => {
    const missing = `${await makeFolder()}/none.csv`;
    const noFile = await roundhouse(["import", "--table", TABLE, "--file", missing], { env: env() });
    expect(noFile).toMatchObject({ code: 2, stdout: "" });
    expect(noFile.stderr).toContain("there is no such file");
    const file = await makeFile("rounds.csv", "round_id,multiplier\n1,2\n");
    const noTable = await roundhouse(["import", "--table", "acme/crash/globl", "--file", file], { env: env() });
    expect(noTable.code).toBe(2);
    expect(noTable.stderr).toContain('there is no table "acme/crash/globl"; the nearest are acme/crash/global, ');
    const notOne = await roundhouse(["export", "rounds", "--table", "acme"], { env: env() });
    expect(notOne.stderr).toContain("expected house/game/market");
  });

  it("can be interrupted while it stores, and leaves nothing", async () => {
    const file = await makeFile("rounds.csv", manyRounds(400_000));
    const begins = () => sql`select from audit_log where action = 'import.begin'`;
    const { length: before } = await begins();
    const running = startRoundhouse(["import", "--table", TABLE, "--file", file], { env: env() });
    await eventually(async () => (await begins()).length > before);
    running.kill("SIGINT");
    const { code, stderr } = await running.ended;
    expect(code).toBe(1);
    expect(stderr).toContain("interrupted");
    await expectNothingStored();
    expect(await readdir(dataDir)).toEqual([]);
  });
});

describe("export", () => {
  it("ends quietly when its reader has seen enough", async () => {
    await importFile(manyRounds(4_000));
    const running = startRoundhouse(["export", "rounds", "--table", TABLE], { env: env() });
    running.child.stdout.once("data", () => running.child.stdout.destroy());
    expect(await running.ended).toMatchObject({ code: 0, stderr: "" });
  });

  it("quotes what CSV must quote", async () => {
    const file = await makeFile("rounds.csv", 'round_id,multiplier\n"a ""b"", c",1.5\n');
    await roundhouse(["import", "--table", "acme/crash/opaque", "--file", file], { env: env() });
    const { stdout } = await roundhouse(["export", "rounds", "--table", "acme/crash/opaque"], { env: env() });
    expect(stdout.split("\n")[1]).toMatch(/^1,"a ""b"", c",1\.50,blue,/);
    const lines = await roundhouse(["export", "rounds", "--table", "acme/crash/opaque", "--json"], { env: env() });
    expect(JSON.parse(lines.stdout.split("\n")[0] ?? "")).toMatchObject({ round_id: 'a "b", c', multiplier: "1.50" });
  });
});
