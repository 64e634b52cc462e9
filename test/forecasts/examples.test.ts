import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { listExamples, runExample } from "../support/examples.ts";

const folder = fileURLToPath(new URL("../../src/forecasts/", import.meta.url));
const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => ({ name, examples: listExamples(`${folder}${name}`) }))
  .filter(({ examples }) => examples.length > 0);

describe("every example in a doc comment of forecasts is true", () => {
  test.each(files)("in $name", async ({ name, examples }) => {
    const exports: Record<string, unknown> = await import(`${folder}${name}`);
    for (const example of examples) {
      const claims = runExample(example, exports);
      expect(claims, `${example.title} claims nothing`).not.toHaveLength(0);
      for (const { line, actual, expected } of claims) expect(actual, `${example.title}: ${line}`).toEqual(expected);
    }
  });

  test("and there are some", () => {
    expect(files.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["accuracy/figures/intervals.ts", "model/ppm.ts", "score/scoring.ts"]),
    );
  });
});
