import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { readFileRows } from "../../src/cli/import/file.ts";
import { readFormat, PLAIN_FORMAT, type FileFormat, type FormatFlags } from "../../src/cli/import/format.ts";
import { notesOf, summaryLines, summaryOf } from "../../src/cli/import/report.ts";
import { timesOf, type DateOrder } from "../../src/cli/import/times.ts";
import { multiplierShape, multipliersOf, type DecimalMark } from "../../src/cli/import/values.ts";
import * as moments from "../../src/cli/time-argument.ts";
import { createRefusals, MOST_LISTED, type RefusedLine, type RefusedLines } from "../../src/import/refusals.ts";
import { emptySurvey } from "../../src/import/survey.ts";
import { type FileRow, readRow } from "../../src/import/row.ts";
import { multiplierText } from "../../src/rounds/round.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import { listExamples, runExample } from "../support/examples.ts";
import { makeFile } from "./world.ts";

it("the examples of times that commands take hold, and what is no time is refused", () => {
  const claims = listExamples("src/cli/time-argument.ts").flatMap((example) => runExample(example, { ...moments }));
  expect(claims.length).toBeGreaterThan(0);
  for (const { line, actual, expected } of claims) expect(actual, line).toEqual(expected);
  for (const text of ["", "yesterday", "2026-02-30T99:00", "5w"]) {
    expect(() => moments.moment(text)).toThrow("expected a time such as");
  }
});

describe("a time of a file", () => {
  const read = (text: string, zone: string | null = null, dates: DateOrder = "auto") => timesOf({ zone, dates })(text);
  const iso = (...given: Parameters<typeof read>) => {
    const time = read(...given);
    return time !== null && "iso" in time ? time.iso : time;
  };

  it.each([
    ["2023-11-23T00:10:41.389Z", "2023-11-23T00:10:41.389Z"],
    ["2026-03-17T15:11:34+00:00", "2026-03-17T15:11:34Z"],
    ["1700698241389", "2023-11-23T00:10:41.389Z"],
    ["1700698241", "2023-11-23T00:10:41Z"],
    ["4/11/2024, 1:21:03 PM", "2024-04-11T13:21:03Z"],
    ["4/11/2024, 12:00:00\u202fAM", "2024-04-11T00:00:00Z"],
    ["11.04.2024 13:21:03,5", "2024-04-11T13:21:03.5Z"],
    ["11.4.2024", "2024-04-11T00:00:00Z"],
    ["2024/4/11 9:21:03", "2024-04-11T09:21:03Z"],
    ["Fri May 03 2024 23:56:01 GMT+0200 (Central European Summer Time)", "2024-05-03T21:56:01Z"],
    ["5 days ago on Fri May 03 2024 23:56:01 GMT+0200 (…)", "2024-05-03T21:56:01Z"],
    ["Tue, 17 Mar 2026 15:12:30 GMT", "2026-03-17T15:12:30Z"],
  ])("is read as people and houses write it: %s", (text, expected) => {
    expect(iso(text)).toBe(expected);
  });

  it.each(["", "yesterday", "13/13/2024, 1:00 PM", "4/11/2024, 13:00 PM", "31.02.2024", "25:00", "4/11-2024"])(
    "is none where it cannot be: %j",
    (text) => expect(read(text)).toBeNull(),
  );

  it("has its month at the configured position, and is refused while the format is unknown", () => {
    expect(iso("3/4/2024 10:00", null, "month_first")).toBe("2024-03-04T10:00:00Z");
    expect(iso("3/4/2024 10:00", null, "day_first")).toBe("2024-04-03T10:00:00Z");
    expect(read("3/4/2024 10:00")).toEqual({
      reason: 'expected a date whose month is known (--dates month_first or day_first), found "3/4/2024 10:00"',
    });
  });

  it("with the day first and AM or PM is refused with the option that reads it", () => {
    expect(read("25/11/2024, 1:21 pm")).toEqual({
      reason:
        'expected a date with the month first, as with AM or PM, found "25/11/2024, 1:21 pm"; state --dates day_first',
    });
    expect(iso("25/11/2024, 1:21 pm", null, "day_first")).toBe("2024-11-25T13:21:00Z");
  });

  it.each([
    ["2024-07-01 12:00:00.25", "Europe/Berlin", "2024-07-01T10:00:00.25Z"],
    ["4/11/2024, 1:21:03 PM", "Europe/Berlin", "2024-04-11T11:21:03Z"],
    ["2024-07-01T12:00:00Z", "Europe/Berlin", "2024-07-01T12:00:00Z"],
    ["1700698241", "Asia/Kathmandu", "2023-11-23T00:10:41Z"],
    ["2024-01-01 00:00", "Asia/Kathmandu", "2023-12-31T18:15:00Z"],
  ])("without a zone is local to the one that is given: %s in %s", (text, zone, expected) => {
    expect(iso(text, zone)).toBe(expected);
  });

  it.each([
    // clocks are put back: 02:00 to 02:59 come twice in Berlin, 01:00 to 01:59 in New York
    ["2025-10-26 01:59:59", "Europe/Berlin", "2025-10-25T23:59:59Z", undefined],
    ["2025-10-26 02:30:00", "Europe/Berlin", "2025-10-26T01:30:00Z", "twice"],
    ["2025-10-26 03:00:00", "Europe/Berlin", "2025-10-26T02:00:00Z", undefined],
    ["2025-11-02 01:30:00", "America/New_York", "2025-11-02T06:30:00Z", "twice"],
    // clocks are put forward: 02:00 to 02:59 never come
    ["2025-03-30 02:30:00", "Europe/Berlin", "2025-03-30T01:30:00Z", "never"],
    ["2025-03-09 02:30:00", "America/New_York", "2025-03-09T07:30:00Z", "never"],
    ["2025-03-09 03:00:00", "America/New_York", "2025-03-09T07:00:00Z", undefined],
    // half an hour only, and a whole day
    ["2025-04-06 01:45:00", "Australia/Lord_Howe", "2025-04-05T15:15:00Z", "twice"],
    ["2011-12-30 12:00:00", "Pacific/Apia", "2011-12-30T22:00:00Z", "never"],
  ])("that the clock shows twice is the later one, one that it never shows is as much later: %s in %s", (...row) => {
    const [text, zone, expected, clock] = row;
    const time = read(text, zone);
    expect(time).toMatchObject({ iso: expected });
    expect(time).toHaveProperty("ms", Date.parse(expected));
    expect(time !== null && "clock" in time ? time.clock : undefined).toBe(clock);
  });
});

describe("a multiplier of a file", () => {
  const read = (text: string | null, decimal: DecimalMark = "auto", scale = 1, instant: string[] = []) => {
    const value = multipliersOf({ decimal, scale, instant })(text);
    return value.ok ? value.hundredths : value.reason;
  };

  it.each([
    ["1,87", 187],
    ["1,87x", 187],
    ["1,234", 123],
    ["6,6402817", 664],
    ["1.234,56 x", 123_456],
    ["1.234", 123_400],
    ["1 234,5", 123_450],
    ["1\u202f234\u00a0567,5", 123_456_750],
    ["12", 1200],
  ])("with a decimal comma: %s", (text, hundredths) => expect(read(text, ",")).toBe(hundredths));

  it.each([
    ["1.87x", 187],
    ["1,234", 123_400],
    ["1,234.5×", 123_450],
    ["1'234.5", 123_450],
    ["1x", 100],
  ])("with a decimal point: %s", (text, hundredths) => expect(read(text, ".")).toBe(hundredths));

  it.each([
    ["1.87", ",", 'expected a multiplier such as 1.234,56 or 1,87x, found "1.87"'],
    ["1,87", ".", 'expected a multiplier such as 1,234.56 or 1.87x, found "1,87"'],
    ["0,5", ",", 'expected 1.00 or more, found "0,5"'],
    ["2.29\u20281.29", ",", 'expected a multiplier such as 1.234,56 or 1,87x, found "2.29\\u20281.29"'],
    ["2.29\u20281.29", "auto", 'expected a multiplier such as 1.87 or "1,87x", found "2.29\\u20281.29"'],
    ["2.29 1.29", "auto", 'expected a multiplier such as 1.87 or "1,87x", found "2.29 1.29"'],
    [null, ",", "expected a multiplier, found null"],
  ] as const)("that does not fit is refused as it came: %j with %s", (text, decimal, reason) => {
    expect(read(text, decimal)).toBe(reason);
  });

  it("counts in units of the scale, and keeps its original text", () => {
    expect(read("27956", "auto", 0.01)).toBe(27_956);
    expect(read("0", "auto", 0.01, ["0"])).toBe(100);
    expect(read("0,00", ",", 1, ["0"])).toBe(100);
    expect(multipliersOf({ decimal: ",", scale: 1, instant: [] })("1.234,5x")).toMatchObject({ rawValue: "1.234,5x" });
  });

  it("shows which mark its file uses for decimals, or that it has two meanings", () => {
    const shapes = ["1,87", "1.234,5x", "1,2345", "1,234", "1.234x", "1.87", "12,345,678", "12", "1,234.5"];
    expect(shapes.map(multiplierShape)).toEqual([
      ...Array.from({ length: 3 }, () => "comma_decimals"),
      "comma_and_three",
      "point_and_three",
      ...Array.from({ length: 4 }, () => "clear"),
    ]);
  });
});

describe("an instant crash of a file", () => {
  it.each([
    ["json", { path: "/rounds", items: "rounds", round_id: "id", multiplier: "x", instant: [0] }, "opaque", "1.00"],
    ["blaze", {}, "opaque", "1.00"],
    ["ethercrash", {}, "consecutive", "1.00"],
    ["roobet", {}, "opaque", "refused"],
  ])(
    "is 1.00 if its table's adapter reads 0 as an instant crash, and refused elsewhere: %s",
    (adapter, feed, ids, expected) => {
      const { settings } = houseEntry({ tables: [tableEntry({ adapter, feed, round_ids: ids })] });
      const [table] = settings.tables;
      if (table === undefined) throw new Error("the house has no table");
      const readMultiplier = multipliersOf({ decimal: ".", scale: 1, instant: table.feed.instant });
      for (const multiplier of ["0", "0.00"]) {
        const row = { line: 2, roundId: "7217785", multiplier, occurredAt: null, hash: null };
        const read = readRow(row, { settings: table, now: Date.now(), readMultiplier });
        expect(read.ok ? multiplierText(read.round.hundredths) : "refused").toBe(expected);
      }
    },
  );
});

describe("the format of a file", () => {
  const MAPPING = `
columns: { round_id: Game No, multiplier: 2, occurred_at: [Date, Time] }
delimiter: tab
decimal: ","
scale: 0.01
instant: ["0", 0]
zone: europe/berlin
dates: day_first
order: newest_first
`;
  const withMap = async (yaml: string, flags: Partial<FormatFlags> = {}) =>
    readFormat({ header: true, map: await makeFile("map.yaml", yaml), ...flags });

  it("is read from a mapping file, and a flag takes precedence", async () => {
    expect(await withMap(MAPPING, { occurredAt: "When", order: "auto" })).toEqual({
      ...PLAIN_FORMAT,
      columns: { round_id: "Game No", multiplier: 2, occurred_at: ["When"], hash: null },
      delimiter: "\t",
      decimal: ",",
      scale: 0.01,
      instant: ["0", 0],
      zone: "Europe/Berlin",
      dates: "day_first",
    });
    expect(await withMap("row_numbers: true\nheader: false\ncolumns: { multiplier: 1 }\n")).toMatchObject({
      row_numbers: "",
      header: false,
    });
    expect(await readFormat({ header: true })).toEqual(PLAIN_FORMAT);
    expect(await withMap("")).toEqual(PLAIN_FORMAT);
  });

  it("is read from flags by the rules of a mapping file", async () => {
    const flags = { header: false, rowNumbers: true, multiplier: "2", occurredAt: " 3 ", delimiter: "tab" };
    expect(await readFormat({ ...flags, zone: "europe/berlin", scale: 0.01 })).toEqual({
      ...PLAIN_FORMAT,
      header: false,
      row_numbers: "",
      columns: { ...PLAIN_FORMAT.columns, multiplier: "2", occurred_at: ["3"] },
      delimiter: "\t",
      zone: "Europe/Berlin",
      scale: 0.01,
    });
    const refusal = readFormat({ header: true, hash: " ", zone: "Europe/Bärlin", scale: "x", delimiter: "|" });
    for (const expected of [
      'columns.hash: expected the name of a column, or its place counted from 1, found ""',
      'zone: expected a time zone such as Europe/Berlin, found "Europe/Bärlin"',
      'scale: expected a number above 0, at most 1, such as 0.01, found "x"',
      'delimiter: expected auto, ",", ";" or tab, found "|"',
    ]) {
      await expect(refusal).rejects.toThrow(expected);
    }
  });

  it("is refused with everything that is wrong with it", async () => {
    const wrong = "colums: {}\ncolumns: { id: 1, multiplier: [] }\nscale: 2\nzone: Europe/Bärlin\norder: backwards\n";
    const refusal = withMap(wrong);
    for (const expected of [
      "colums: there is no such setting; there are format, delimiter, header, columns",
      "columns.id: there is no such setting; there are round_id, multiplier, occurred_at, hash",
      "columns.multiplier: expected the name of a column, or its place counted from 1",
      "scale: ",
      "zone: expected a time zone such as Europe/Berlin",
      "order: ",
    ]) {
      await expect(refusal).rejects.toThrow(expected);
    }
  });

  it.each([
    ["no YAML", "a: [", "is not YAML"],
    ["a list", "- 1", "the file: "],
    ["a column without a name", "columns: { round_id: }", "round_id: expected the name of a column, or its place"],
    ["times without a name", "columns: { occurred_at: }", "occurred_at: expected the name of a column, or its place"],
    ["ids and row numbers", "row_numbers: true\ncolumns: { round_id: 1 }", "give one of both"],
    ["no header and names", "header: false\ncolumns: { round_id: 1, multiplier: crash }", "found crash"],
    ["no header and no columns", "header: false", "multiplier: a file without a header needs the place"],
  ])("is refused: %s", async (_, yaml, expected) => {
    await expect(withMap(yaml)).rejects.toThrow(expected);
  });

  it("needs its mapping file to be there", async () => {
    await expect(readFormat({ header: true, map: "/nowhere.yaml" })).rejects.toThrow("/nowhere.yaml cannot be read");
  });
});

function listOf(refused: readonly RefusedLine[]): RefusedLines {
  const refusals = createRefusals();
  for (const { line, reason } of refused) refusals.add(line, reason);
  return refusals.list();
}

describe("refused lines", () => {
  it("are grouped by what was expected of them, the most frequent first", () => {
    const refused = [
      { line: 2, reason: "expected 1.00 or more, found 0" },
      { line: 3, reason: "the proof fails: the hash gives 1.87" },
      ...[4, 5, 6, 7].map((line) => ({ line, reason: `expected a multiplier, found "${line}"` })),
      { line: 8, reason: "the proof fails: the hash gives 2.00" },
    ];
    expect(listOf(refused).refusedKinds).toMatchObject([
      { reason: "expected a multiplier", count: 4, lines: [4, 5, 6] },
      { reason: "the proof fails", count: 2, lines: [3, 8] },
      { reason: "expected 1.00 or more", count: 1, lines: [2] },
    ]);
  });

  it("are one kind when the month of each date is unknown", () => {
    const read = timesOf({ zone: null, dates: "auto" });
    const refused = Array.from({ length: 20_000 }, (_, line) => {
      const found = read(`3/4/2024 10:00:00.${String(line).padStart(5, "0")}`);
      if (found === null || !("reason" in found)) throw new Error("the date is read");
      return { line, reason: found.reason };
    });
    const list = listOf(refused);
    expect(list).toMatchObject({ refusedCount: 20_000, refusedKinds: [{ count: 20_000, lines: [0, 1, 2] }] });
    expect(list.refused).toHaveLength(MOST_LISTED);
  });

  it("are of at most a thousand kinds, then of one for all others", () => {
    const refused = Array.from({ length: 20_000 }, (_, line) => ({ line, reason: `reason ${line}` }));
    const { refusedCount, refusedKinds, refused: listed } = listOf(refused);
    expect(refusedCount).toBe(20_000);
    expect(refusedKinds).toHaveLength(1_001);
    expect(refusedKinds[0]).toEqual({
      reason: "other reasons",
      count: 19_000,
      lines: [1_000, 1_001, 1_002],
      example: "reason 1000",
    });
    expect(listed).toHaveLength(1_000 + MOST_LISTED);
  });
});

describe("a report", () => {
  const imported = (changed: object = {}) => ({
    late: false,
    read: 3,
    inserted: 1,
    skipped: 0,
    ...listOf([]),
    survey: emptySurvey(),
    ...changed,
  });
  const about = { numbered: false, zone: "Europe/Berlin" };

  it("has no notes if there is nothing to report", () => {
    expect(notesOf(imported(), about)).toEqual([]);
    expect(summaryLines(imported({ read: 0 }))).toContain("ids      none");
    expect(summaryOf(imported())).toMatchObject({ ids: null, times: { from: null, to: null, without: 0 } });
  });

  it("reports for times, orders, marks and missing ids what was decided and how to decide otherwise", () => {
    const order = { listed: "newest_first", decidedBy: "times", takenBy: "file", isReversed: true, missing: null };
    const clock = { twice: { count: 2, line: 7 }, never: { count: 0, line: null } };
    const survey = { ...emptySurvey(), order, clock, thousands: { count: 3, line: 9 } };
    expect(notesOf(imported({ survey }), { ...about, numbered: true })).toEqual([
      expect.stringContaining("a block that was entered twice looks like two rounds"),
      "the file lists the newest first (from its times); rounds are taken from its end; use --order to change it",
      expect.stringContaining("2 times come twice in Europe/Berlin, when the clock is put back (line 7)"),
      expect.stringContaining("3 values such as that of line 9 have three digits after a comma"),
    ]);
    const bare = [2, 3, 4].map((line) => ({ line, reason: "expected a round_id, found nothing" }));
    expect(notesOf(imported(listOf(bare)), about)[1]).toContain("number the rows with --row-numbers");
    expect(notesOf(imported({ read: 4, ...listOf(bare) }), about)).toHaveLength(1);
  });
});

describe("a file", () => {
  async function read(
    name: string,
    content: string | Buffer,
    changed: Partial<FileFormat> = {},
    signal = new AbortController().signal,
  ) {
    const file = await makeFile(name, content);
    const findings = { ignored: [], refusals: createRefusals(), total: 0 };
    const rows: FileRow[] = [];
    await readFileRows(file, { ...PLAIN_FORMAT, ...changed }, findings, {
      onRow: (row) => rows.push(row),
      progress: () => undefined,
      signal,
    });
    return { rows, ...findings, refused: findings.refusals.list().refused };
  }
  const rowOf = (line: number, roundId: string, multiplier: string): FileRow => ({
    line,
    roundId,
    multiplier,
    occurredAt: null,
    hash: null,
  });

  it("is CSV or JSON lines by option, by name, or by its beginning", async () => {
    const csv = "\nround_id,multiplier\n1,1.5\n";
    const json = '\n{"round_id":1,"multiplier":1.5}\n';
    expect((await read("rounds.txt", csv)).rows).toEqual([rowOf(3, "1", "1.5")]);
    expect((await read("rounds.csv", json)).rows).toEqual([rowOf(2, "1", "1.5")]);
    expect(await read("rounds.ndjson.gz", gzipSync("1,1.5\n"))).toMatchObject({ refused: [{ line: 1 }], total: 1 });
    await expect(read("rounds.csv", json, { format: "csv" })).rejects.toThrow("cannot be imported");
  });

  it("has the number of each row in place of its id if rows are numbered, refused ones counted", async () => {
    const { rows, total, refused } = await read("rounds.csv", "note,multiplier\na,1.5\n\nb\nc,1.7\n", {
      row_numbers: "",
    });
    expect(rows).toEqual([rowOf(2, "1", "1.5"), rowOf(5, "3", "1.7")]);
    expect({ total, refused }).toMatchObject({ total: 3, refused: [{ line: 4 }] });
    const bare = { header: false, row_numbers: "", columns: { ...PLAIN_FORMAT.columns, multiplier: 1 } };
    expect((await read("rounds.csv", "1.5\n1.6\n", bare)).total).toBe(2);
  });

  it("is no longer read once the command is interrupted, whose message names no file", async () => {
    const interrupted = AbortSignal.abort(new Error("interrupted"));
    await expect(read("rounds.csv", "round_id,multiplier\n1,2\n", {}, interrupted)).rejects.toThrow(/^interrupted$/);
  });

  it.each([
    ["is empty", "", "it is empty"],
    ["has blank lines alone", "\n\n", "it is empty"],
    ["is UTF-16", Buffer.from("\u{feff}round_id,multiplier\n1,2\n", "utf16le"), "is not UTF-8"],
    ["is half a gzip", gzipSync(`round_id,multiplier\n${"1,2\n".repeat(50_000)}`).subarray(0, -20), "damaged gzip"],
    ["is a workbook called .csv", Buffer.from("PK\u{3}\u{4}\u{14}\u{0}\u{6}\u{0}"), "it is an Excel workbook"],
    ["is one list of JSON", '[{"round_id":1}]', "write one object per line"],
    ["is a web page", "<!doctype html><title>Log in</title>", "it is a web page"],
  ])("is refused whole if it %s", async (_, content, expected) => {
    const refusal = read("rounds.csv", content);
    await expect(refusal).rejects.toThrow("rounds.csv cannot be imported");
    await expect(refusal).rejects.toMatchObject({ cause: { message: expect.stringContaining(expected) } });
  });
});
