import { describe, expect, it } from "vitest";
import { findIdioms, folderOf, risen } from "./idioms.ts";

const found = (text: string) => findIdioms(text).map((one) => one.found);

describe("forbidden idioms", () => {
  it.each([
    ["Whoever asks is told at once.", ["told", "Whoever", "at once"]],
    ["It is kept for good.\nWhere it fails, a person goes on by hand.", ["Where ", "goes on", "for good", "by hand"]],
    ["A house in trouble is kept apart beside the others", ["kept apart", "beside", "trouble"]],
  ])("finds them in %j", (text, expected) => {
    expect(found(text)).toEqual(expected);
  });

  it.each(["besides", "retold", "An onward call", "select 1 where x", "Where to begin", "untold"])(
    "lets %j pass",
    (text) => {
      expect(found(text)).toEqual([]);
    },
  );

  it("names the line", () => {
    expect(findIdioms("one\ntwo\nanew")).toMatchObject([{ line: 3, found: "anew" }]);
  });

  it("counts by folder, two deep, and files at the top by name", () => {
    expect(["README.md", "docs/cli.md", "src/main.ts", "src/ops/bank/list.ts"].map(folderOf)).toEqual([
      "README.md",
      "docs",
      "src",
      "src/ops",
    ]);
  });

  it("reports a count that rises and any idiom in a folder without an allowance", () => {
    expect(risen({ "src/a": 3, "src/b": 1, "src/c": 1 }, { "src/a": 2, "src/b": 1 })).toEqual([
      "src/a: 3, allowed 2",
      "src/c: 1, allowed 0",
    ]);
  });
});
