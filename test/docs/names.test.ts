import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = path.join(import.meta.dirname, "../..");
const textOf = (file: string) => readFileSync(path.join(ROOT, file), "utf8");
const source = globSync("{src,jobs}/**/*.{ts,eta}", { cwd: ROOT }).map(textOf).join("\n");
const architecture = textOf("docs/architecture.md");
const namesIn = (text: string, pattern: RegExp) => [
  ...new Set([...text.matchAll(pattern)].map(([, name = ""]) => name)),
];

describe("documents", () => {
  it("name only pages that the source has", () => {
    const pages = globSync(["README.md", "docs/*.md"], { cwd: ROOT }).map(textOf).join("\n");
    const paths = namesIn(pages, /`(\/(?:ops|console|docs|log|topups)(?:\/[a-z-]+)+)`/g);
    expect(paths.length).toBeGreaterThan(20);
    const isKnown = (page: string) => {
      const below = page.replace(/^\/(?:ops|console)/, "");
      return [page, below, `/${page.split("/").at(-1)}`].some(
        (one) => source.includes(`"${one}`) || source.includes(`\`${one}`),
      );
    };
    expect(paths.filter((page) => !isKnown(page))).toEqual([]);
  });

  it("name only functions in the walk through a poll that the source has", () => {
    const functions = namesIn(architecture, /`([a-z]+[A-Z][A-Za-z]+)`/g);
    expect(functions.length).toBeGreaterThan(20);
    const isDefined = (name: string) => new RegExp(`\\b(?:function|const) ${name}\\b|\\b${name}[(:]`).test(source);
    expect(functions.filter((name) => !isDefined(name))).toEqual([]);
  });

  it("list every folder of src", () => {
    const [, table = ""] = architecture.split("## Folders of src");
    const listed = table.split("\n").flatMap((row) => namesIn(row.split("|")[1] ?? "", /`([a-z-]+)`/g));
    const folders = new Set(globSync("src/*/**/*.ts", { cwd: ROOT }).map((file) => file.split("/")[1] ?? ""));
    expect(listed.toSorted()).toEqual([...folders].toSorted());
  });
});
