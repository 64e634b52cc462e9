import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { readLines, type Line } from "../../src/cli/csv-lines.ts";
import { csvReader, type CsvItem } from "../../src/cli/csv-rows.ts";

async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function linesOf(content: string | Buffer, size = 65_536): Promise<Line[]> {
  const lines: Line[] = [];
  for await (const batch of readLines(chunksOf(Buffer.from(content), size))) lines.push(...batch);
  return lines;
}

/** What the reader makes of a file: rows as `line round multiplier`, refused lines as `line!`. */
async function readAll(content: string): Promise<string[]> {
  const [header, ...lines] = await linesOf(content);
  const reader = csvReader(header!);
  return [...reader.read(lines), ...reader.end()].map(shown);
}

function shown(item: CsvItem): string {
  return item.ok ? `${item.row.line} ${item.row.roundId} ${item.row.multiplier}` : `${item.line}!`;
}

describe("lines of a file", () => {
  it.each([1, 2, 3, 7, 65_536])("are the same however the bytes are cut (%i at a time)", async (size) => {
    const content = "\u{feff}round_id,multiplier\r\n1,1.87x\n2,„zwei“\r3,1.05\r\n\r\n4,2";
    const lines = (await linesOf(content, size)).map(({ line, text }) => `${line}|${text}`);
    expect(lines).toEqual(["1|round_id,multiplier", "2|1,1.87x", "3|2,„zwei“", "4|3,1.05", "5|", "6|4,2"]);
  });

  it("come out of a gzip as out of the file itself", async () => {
    const content = `round_id,multiplier\n${Array.from({ length: 50_000 }, (_, n) => `${n},1.${n % 90}`).join("\n")}\n`;
    expect(await linesOf(gzipSync(content), 1000)).toEqual(await linesOf(content));
  });

  it("are none where the file is empty", async () => {
    expect(await linesOf("")).toEqual([]);
    expect(await linesOf("\n")).toEqual([{ line: 1, text: "" }]);
  });

  it.each([
    ["UTF-16 with a mark", Buffer.from("\u{feff}round_id,multiplier\n", "utf16le"), "line 1 is not UTF-8"],
    ["UTF-16 without one", Buffer.from("round_id,multiplier\n", "utf16le"), "NUL"],
    ["Latin-1", Buffer.from("round_id,multiplier\n1,1.5\n2,é\n", "latin1"), "is not UTF-8"],
    ["a character cut at the end", Buffer.from("round_id,multiplier\n1,€").subarray(0, -1), "line 2 is not UTF-8"],
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
    ["id,multiplier", "round_id is missing"],
    ["round_id;multiplier", "with commas between"],
    ["round_id,multiplier,round_id", "round_id is there twice"],
    ["12345,1.87", "expected a header such as round_id,multiplier"],
    ["", "round_id is missing"],
  ])("need a header that names them: not %j", (text, expected) => {
    expect(() => csvReader({ line: 1, text })).toThrow(expected);
  });
});
