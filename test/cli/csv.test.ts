import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { readLines, type Line } from "../../src/cli/import/csv-lines.ts";
import { csvReader } from "../../src/cli/import/csv-rows.ts";
import { PLAIN_FORMAT, type FileFormat } from "../../src/cli/import/format.ts";
import type { FileItem } from "../../src/cli/import/item.ts";
import { jsonLinesReader } from "../../src/cli/import/jsonl.ts";

async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function linesOf(content: string | Buffer, size = 65_536): Promise<Line[]> {
  const lines: Line[] = [];
  for await (const batch of readLines(chunksOf(Buffer.from(content), size))) lines.push(...batch);
  return lines;
}

/** What the reader makes of a file: rows as `line round multiplier`, refused lines as `line!`. */
async function readAll(content: string, format: Partial<FileFormat> = {}): Promise<string[]> {
  const lines = await linesOf(content);
  const whole = { ...PLAIN_FORMAT, ...format };
  const reader = csvReader(lines[0]!, whole);
  return [...reader.read(lines.slice(whole.header ? 1 : 0)), ...reader.end()].map(shown);
}

const columns = (named: Partial<FileFormat["columns"]>) => ({ columns: { ...PLAIN_FORMAT.columns, ...named } });

function shown(item: FileItem): string {
  return item.ok ? `${item.row.line} ${item.row.roundId} ${item.row.multiplier}` : `${item.line}!`;
}

describe("lines of a file", () => {
  it.each([1, 2, 3, 7, 65_536])("are the same however the bytes are cut (%i at a time)", async (size) => {
    const content = "\u{feff}round_id,multiplier\r\n1,1.87x\n2,„zwei“\r3,1.05\r\n\r\n4,2";
    const lines = (await linesOf(content, size)).map(({ line, text }) => `${line}|${text}`);
    expect(lines).toEqual(["1|round_id,multiplier", "2|1,1.87x", "3|2,„zwei“", "4|3,1.05", "5|", "6|4,2"]);
  });

  it("are the same from a gzip as from the file itself", async () => {
    const content = `round_id,multiplier\n${Array.from({ length: 50_000 }, (_, n) => `${n},1.${n % 90}`).join("\n")}\n`;
    expect(await linesOf(gzipSync(content), 1000)).toEqual(await linesOf(content));
  });

  it("are none if the file is empty", async () => {
    expect(await linesOf("")).toEqual([]);
    expect(await linesOf("\n")).toEqual([{ line: 1, text: "" }]);
  });

  it.each([
    ["UTF-16 with a mark", Buffer.from("\u{feff}round_id,multiplier\n", "utf16le"), "line 1 is not UTF-8"],
    ["UTF-16 without one", Buffer.from("round_id,multiplier\n", "utf16le"), "NUL"],
    ["Latin-1", Buffer.from("round_id,multiplier\n1,1.5\n2,é\n", "latin1"), "is not UTF-8"],
    ["a character cut at the end", Buffer.from("round_id,multiplier\n1,€").subarray(0, -1), "line 2 is not UTF-8"],
    ["a workbook", Buffer.from("PK\u{3}\u{4}\u{14}\u{0}\u{6}\u{0}"), "it is an Excel workbook"],
    ["an old workbook", Buffer.from("d0cf11e0a1b11ae1", "hex"), "save it as CSV UTF-8"],
    ["half a gzip", gzipSync("round_id,multiplier\n1,2\n".repeat(1000)).subarray(0, 60), "damaged gzip"],
    ["no line end in a million characters", Buffer.from("1".repeat(1_000_001)), "line 1 is longer"],
  ])("are refused, with what to do: %s", async (_, content, expected) => {
    await expect(linesOf(content)).rejects.toThrow(expected);
  });
});

describe("rows of a file", () => {
  it("find their columns in any order, between others", async () => {
    const [header, ...lines] = await linesOf(
      'game,hash,Multiplier,note,round_id,occurred_at\ncrash,ab,1.87,"a, b",8812345,2026-11-21T04:00:12Z\ncrash,,2,,8812346,\n',
    );
    const reader = csvReader(header!);
    expect(reader.ignored).toEqual(["game", "note"]);
    expect(reader.read(lines)).toEqual([
      {
        ok: true,
        row: { line: 2, roundId: "8812345", multiplier: "1.87", occurredAt: "2026-11-21T04:00:12Z", hash: "ab" },
      },
      { ok: true, row: { line: 3, roundId: "8812346", multiplier: "2", occurredAt: null, hash: null } },
    ]);
  });

  it("may have quotes, and line ends inside of them", async () => {
    const content = 'round_id,multiplier,note\n"1","1,87x",\n2,1.05,"two\nlines, ""quoted"""\n3,2,\n';
    expect(await readAll(content)).toEqual(["2 1 1,87x", "3 2 1.05", "5 3 2"]);
  });

  it("are refused one by one: a stray quote or a wrong number of fields costs its own line only", async () => {
    const content = 'round_id,multiplier\n1,1.5\n2,"1.6\n3,1.7,\n4\n5,1.8,x\n\n   \n6,a"b"c\n7,1.9\n8,"2\n9,3';
    expect(await readAll(content)).toEqual(["2 1 1.5", "3!", "4 3 1.7", "5!", "6!", "9!", "10 7 1.9", "11!", "12 9 3"]);
  });

  it("after a quote that is never closed are all read, however many they are", async () => {
    const others = Array.from({ length: 100 }, (_, n) => `${n},1.5`);
    expect(await readAll(`round_id,multiplier\n"0,1.5\n${others.join("\n")}`)).toEqual([
      "2!",
      ...others.map((_, n) => `${n + 3} ${n} 1.5`),
    ]);
  });

  it.each([
    ["semicolons", "round_id;multiplier;note\n1;1,87;a, b\n2;2;\n"],
    ["tabs", "round_id\tmultiplier\n1\t1,87\n2\t2\n"],
    ["semicolons and quotes", 'note;"round_id";"multiplier"\n"a; b";1;"1,87"\n;2;2\n'],
  ])("may have %s between their fields, detected from the header", async (_, content) => {
    expect(await readAll(content)).toEqual(["2 1 1,87", "3 2 2"]);
  });

  it("are found under the names or at the places that are given, a name before a place", async () => {
    const format = columns({ round_id: "#", multiplier: "Crash", occurred_at: ["Date", "time"] });
    const [header, ...lines] = await linesOf("#,date,Time,crash\n7,2024-04-11,13:21:03,1.5\n8,2024-04-11,,2\n");
    const items = csvReader(header!, { ...PLAIN_FORMAT, ...format }).read(lines);
    expect(items).toMatchObject([
      { row: { roundId: "7", multiplier: "1.5", occurredAt: "2024-04-11 13:21:03" } },
      { row: { roundId: "8", multiplier: "2", occurredAt: "2024-04-11" } },
    ]);
    const placed = { header: false, ...columns({ round_id: 3, multiplier: "1" }) };
    expect(await readAll("1.5;x;7\n2,25;x;8\n", placed)).toEqual(["1 7 1.5", "2 8 2,25"]);
    expect(await readAll("2,1\n7,1.5\n", columns({ round_id: "2", multiplier: "1" }))).toEqual(["2 7 1.5"]);
  });

  it("are read after an unknown leading column, and without ids if rows are numbered", async () => {
    const [header] = await linesOf("#,round_id,multiplier\n");
    expect(csvReader(header!).ignored).toEqual(["#"]);
    expect(await readAll("#,round_id,multiplier\n0,7,1.5\n")).toEqual(["2 7 1.5"]);
    expect(await readAll("value,multiplier\na,1.5\n", { row_numbers: "" })).toEqual(["2 null 1.5"]);
  });

  it("keep two values that U+2028 glues together in one field", async () => {
    expect(await readAll("round_id,multiplier\n1,2.29\u{2028}1.29\n")).toEqual(["2 1 2.29\u{2028}1.29"]);
  });

  it("need the columns that were named", () => {
    const format = { ...PLAIN_FORMAT, ...columns({ multiplier: "crash" }) };
    const named = () => csvReader({ line: 1, text: "round_id,multiplier" }, format);
    expect(named).toThrow(
      'line 1: expected a column "crash" for multiplier, found "round_id,multiplier": crash is missing',
    );
    const placed = { ...PLAIN_FORMAT, header: false, ...columns({ round_id: 1, multiplier: 5 }) };
    expect(() => csvReader({ line: 1, text: "1,2.5" }, placed)).toThrow("which has fewer");
  });

  it.each([
    ["id,multiplier", "round_id is missing"],
    ["round_id|multiplier", "with commas, semicolons or tabs between"],
    ["round_id,multiplier,round_id", "round_id is there twice"],
    ["12345,1.87", "expected a header such as round_id,multiplier"],
    ["", "round_id is missing"],
  ])("need a header that names them: not %j", (text, expected) => {
    expect(() => csvReader({ line: 1, text })).toThrow(expected);
  });
});

describe("JSON lines", () => {
  const read = (text: string, format: Partial<FileFormat> = {}) =>
    jsonLinesReader({ ...PLAIN_FORMAT, ...format }).read([{ line: 1, text }])[0];

  it("give texts and numbers with all their digits, whatever surrounds them", () => {
    expect(read('{"x":[1],"multiplier":1.10,"round_id":9007199254740993,"occurred_at":null,"hash":" ab "}')).toEqual({
      ok: true,
      row: { line: 1, roundId: "9007199254740993", multiplier: "1.10", occurredAt: null, hash: "ab" },
    });
  });

  it("may have their fields inside of others", () => {
    const format = columns({ round_id: "data.id", multiplier: "a.b", occurred_at: ["day", "data.time"] });
    expect(read('{"a.b":"1.87x","data":{"id":"V1","time":"12:00"},"day":"2024-04-11"}', format)).toMatchObject({
      row: { roundId: "V1", multiplier: "1.87x", occurredAt: "2024-04-11 12:00" },
    });
  });

  it.each([
    ["[1,2]", "expected a JSON object, found a list of 2"],
    ['{"round_id":1,', "expected a JSON object, found incomplete JSON"],
    ["1,1.87", "expected a JSON object, found a text that is not JSON"],
    ['{"round_id":{},"multiplier":2}', "expected a text or a number as round_id, found an object"],
    ['{"round_id":1,"multiplier":true}', "expected a text or a number as multiplier, found true"],
  ])("are refused one by one: %s", (text, reason) => {
    expect(read(text)).toEqual({ ok: false, line: 1, reason });
  });

  it("are refused if PostgreSQL cannot store a field of them", () => {
    for (const escape of ["\\u0000", "\\ud83d"]) {
      expect(read(`{"round_id":"7${escape}","multiplier":2}`)).toMatchObject({
        ok: false,
        reason: expect.stringMatching(/^expected characters of Unicode other than NUL as round_id, found/),
      });
    }
  });

  it("that are empty are no rows", () => {
    expect(jsonLinesReader(PLAIN_FORMAT).read([{ line: 1, text: "  " }])).toEqual([]);
  });
});
