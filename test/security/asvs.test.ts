import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SETTING_GROUPS } from "../../src/config/settings-text.ts";
import { CHECKLIST } from "./checklist.ts";

const ROOT = join(import.meta.dirname, "../..");

/** The requirements of levels 1 and 2 of ASVS 5.0.0, by section. */
const SECTIONS = `
  1.1: 1 2; 1.2: 1 2 3 4 5 6 7 8 9; 1.3: 1 2 3 4 5 6 7 8 9 10 11; 1.4: 1 2 3; 1.5: 1 2;
  2.1: 1 2 3; 2.2: 1 2 3; 2.3: 1 2 3 4; 2.4: 1;
  3.2: 1 2; 3.3: 1 2 3 4; 3.4: 1 2 3 4 5 6; 3.5: 1 2 3 4 5; 3.7: 1 2;
  4.1: 1 2 3; 4.2: 1; 4.3: 1 2; 4.4: 1 2 3 4;
  5.1: 1; 5.2: 1 2 3; 5.3: 1 2; 5.4: 1 2 3;
  6.1: 1 2 3; 6.2: 1 2 3 4 5 6 7 8 9 10 11 12; 6.3: 1 2 3 4; 6.4: 1 2 3 4; 6.5: 1 2 3 4 5; 6.6: 1 2 3; 6.8: 1 2 3 4;
  7.1: 1 2 3; 7.2: 1 2 3 4; 7.3: 1 2; 7.4: 1 2 3 4 5; 7.5: 1 2; 7.6: 1 2;
  8.1: 1 2; 8.2: 1 2 3; 8.3: 1; 8.4: 1;
  9.1: 1 2 3; 9.2: 1 2 3 4;
  10.1: 1 2; 10.2: 1 2; 10.3: 1 2 3 4; 10.4: 1 2 3 4 5 6 7 8 9 10 11; 10.5: 1 2 3 4 5; 10.6: 1 2; 10.7: 1 2 3;
  11.1: 1 2; 11.2: 1 2 3; 11.3: 1 2 3; 11.4: 1 2 3 4; 11.5: 1; 11.6: 1;
  12.1: 1 2 3; 12.2: 1 2; 12.3: 1 2 3 4;
  13.1: 1; 13.2: 1 2 3 4 5; 13.3: 1 2; 13.4: 1 2 3 4 5;
  14.1: 1 2; 14.2: 1 2 3 4; 14.3: 1 2 3;
  15.1: 1 2 3; 15.2: 1 2 3; 15.3: 1 2 3 4 5 6 7;
  16.1: 1; 16.2: 1 2 3 4 5; 16.3: 1 2 3 4; 16.4: 1 2 3; 16.5: 1 2 3;
  17.1: 1; 17.2: 1 2 3 4; 17.3: 1 2`;

const NUMBERS = SECTIONS.trim()
  .split(/;\s*/)
  .flatMap((section) => {
    const [name = "", list = ""] = section.split(": ");
    return list.split(" ").map((at) => `${name}.${at}`);
  });

/** Rows of the page: their numbers, state and evidence. */
const rows = readFileSync(join(ROOT, "docs/asvs.md"), "utf8")
  .split("\n")
  .filter((line) => /^\| \d/.test(line))
  .map((line) => {
    const [numbers = "", , state = "", evidence = ""] = line
      .split(" | ")
      .map((cell) => cell.replaceAll(/^\| | \|$/g, ""));
    return { numbers: numbers.split(", "), state, evidence };
  });

const SETTINGS = new Set(Object.values(SETTING_GROUPS).flatMap((group) => Object.keys(group)));

describe("the list of ASVS requirements", () => {
  it("has every requirement of levels 1 and 2 once", () => {
    expect(NUMBERS.length).toBe(253);
    expect(rows.flatMap(({ numbers }) => numbers).toSorted(byNumber)).toEqual(NUMBERS);
  });

  it.each(rows)("gives a state and evidence or a reason: $numbers", ({ state, evidence }) => {
    expect(["met", "partly", "not met", "yours", "n/a"]).toContain(state);
    expect(evidence.length).toBeGreaterThan(3);
    const known = new Set(CHECKLIST.map(({ id }) => id));
    const ids = [...evidence.matchAll(/\[([A-Z][A-Z0-9-]*)\]/g)].map(([, id]) => id!);
    for (const id of ids) expect(known, `the id ${id}`).toContain(id);
    const quoted = [...evidence.matchAll(/`([^`]+)`/g)].map(([, text]) => text!);
    const files = quoted.filter((text) => /^(?:src|test|docs|sql|deploy)\//.test(text) || text === "SECURITY.md");
    for (const file of files) expect(existsSync(join(ROOT, file)), file).toBe(true);
    const settings = quoted.filter((text) => /^[A-Z][A-Z_]+$/.test(text) && text !== "NAME_FILE");
    for (const setting of settings) expect(SETTINGS, `the setting ${setting}`).toContain(setting);
  });

  it("names a file, a test id or a setting for most of what is met", () => {
    const met = rows.filter(({ state }) => state === "met");
    const bare = met.filter(({ evidence }) => !/\[[A-Z]|`(?:src|test|docs|sql|deploy)\/|SECURITY\.md/.test(evidence));
    // these are met by something that is not there, or not ours
    expect(bare.flatMap(({ numbers }) => numbers)).toEqual([]);
  });
});

/** Compares numbers such as 1.10.2 part by part. */
function byNumber(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => text.split(".").map(Number));
  return left!.map((part, at) => part - right![at]!).find((difference) => difference !== 0) ?? 0;
}
