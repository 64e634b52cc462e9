import { describe, expect, it } from "vitest";
import { jsonParts, type Pages } from "../src/json-parts.ts";

async function* pagesOf(...pages: unknown[][]): Pages {
  for (const page of pages) yield await Promise.resolve(page);
}

async function textOf(value: unknown): Promise<string> {
  return (await Array.fromAsync(jsonParts(value))).join("");
}

describe("the parts of a JSON text", () => {
  it("are together what JSON.stringify writes, with two spaces of indentation", async () => {
    const rows = [{ name: "a\nb", list: [1, { deep: null }] }, "text", [], {}];
    const whole = { first: { a: 1 }, rows, empty: [], nested: { name: "x", rows }, at: new Date(0), last: true };
    const inPages = {
      ...whole,
      left: undefined,
      rows: pagesOf(rows.slice(0, 1), [], rows.slice(1)),
      empty: pagesOf([]),
      nested: { name: "x", rows: pagesOf(rows) },
    };
    expect(await textOf(inPages)).toBe(JSON.stringify(whole, null, 2));
  });

  it("have bigints as text", async () => {
    expect(JSON.parse(await textOf({ one: 1n, rows: pagesOf([{ two: 2n }]) }))).toEqual({
      one: "1",
      rows: [{ two: "2" }],
    });
  });

  it("read a page of a list only when the text has those before it", async () => {
    const read: number[] = [];
    async function* pages(): Pages {
      for (const n of [1, 2]) {
        read.push(n);
        yield await Promise.resolve([n]);
      }
    }
    const parts = jsonParts({ rows: pages() });
    for (let text = ""; !text.includes("1");) text += String((await parts.next()).value);
    expect(read).toEqual([1]);
  });
});
