import { existsSync, globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = path.join(import.meta.dirname, "../..");
const pages = globSync(["*.md", "docs/*.md"], { cwd: ROOT }).toSorted();

const textOf = (file: string) => readFileSync(path.join(ROOT, file), "utf8");
const withoutCode = (text: string) => text.replaceAll(/^```.*?^```/gms, "");

/** Anchors of a page by GitHub's rule: lower case, punctuation dropped, spaces as hyphens. */
function anchorsOf(file: string): Set<string> {
  const headings = [...withoutCode(textOf(file)).matchAll(/^#{1,6} (.+)$/gm)];
  return new Set(
    headings.map(([, title = ""]) =>
      title
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\- _]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

/** Links of a page that lead nowhere: a file that is not there, or a heading that its page does not have. */
function deadLinks(file: string): string[] {
  const targets = [...withoutCode(textOf(file)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  return targets.filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [linked = "", anchor] = target.split("#");
    const page = linked === "" ? file : path.join(path.dirname(file), linked);
    if (!existsSync(path.join(ROOT, page))) return true;
    return anchor !== undefined && page.endsWith(".md") && !anchorsOf(page).has(anchor);
  });
}

describe("documents", () => {
  it.each(pages)("%s links only to files and headings that exist", (file) => {
    expect(deadLinks(file)).toEqual([]);
  });

  it("README fits on 200 lines and links every page of docs/", () => {
    const readme = textOf("README.md");
    expect(readme.split("\n").length).toBeLessThanOrEqual(201);
    const missing = globSync("docs/*.md", { cwd: ROOT }).filter((page) => !readme.includes(`](${page})`));
    expect(missing).toEqual([]);
  });
});
