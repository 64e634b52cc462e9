import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";
import { plainText, snakeKeys } from "../../src/cli/output.ts";
import { listExamples, runExample } from "../support/examples.ts";

const OUTPUT = join(import.meta.dirname, "../../src/cli/output.ts");
const PRINTS = `import { coloredStatus, print } from ${JSON.stringify(OUTPUT)}; await print(coloredStatus("offline"));`;

it.each([
  [{}, "offline\n"],
  [{ NO_COLOR: "1" }, "offline\n"],
  [{ FORCE_COLOR: "1" }, "\u001b[31moffline\u001b[39m\n"],
])("writes to a pipe with %j as %j", (environment, expected) => {
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", PRINTS], {
    env: { PATH: process.env.PATH, ...environment },
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  expect(stdout).toBe(expected);
});

it("pads columns by what a terminal shows, and takes no longer for each row if there are many", () => {
  const script = (rows: string) =>
    `import { paint, printTable } from ${JSON.stringify(OUTPUT)}; await printTable(["a", "b", "c"], ${rows});`;
  const run = (rows: string) =>
    spawnSync(process.execPath, ["--input-type=module", "--eval", script(rows)], {
      env: { PATH: process.env.PATH, FORCE_COLOR: "1" },
      encoding: "utf8",
      maxBuffer: 1e9,
      timeout: 20_000,
    });
  const cells = '[["東京", "e\u0301", 1], [paint.red("x"), null, "two\\nlines"], ["abcdefg", true, ""]]';
  expect(stripVTControlCharacters(run(cells).stdout)).toBe(
    "a        b     c\n東京     e\u0301     1\nx        -     two lines\nabcdefg  true\n",
  );
  const { stdout, signal } = run('Array.from({ length: 40_000 }, (_, n) => [n, "b", n])');
  expect([signal, stdout.split("\n").length]).toEqual([null, 40_002]);
});

it("prints the texts of pages with hyphens in place of all dashes and minus signs, in titles of columns too", () => {
  const script = `import { printTexts } from ${JSON.stringify(OUTPUT)};
    await printTexts(["1 − log loss", "b"], [["50.28–50.64", "−0.39"], ["–", "−2 % to −1 %"]]);`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    env: { PATH: process.env.PATH },
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  expect(stdout).toBe("1 - log loss  b\n50.28-50.64   -0.39\n-             -2 % to -1 %\n");
});

it.each(listExamples("src/cli/output.ts").flatMap((one) => runExample(one, { plainText, snakeKeys })))(
  "returns what its example states: $line",
  ({ actual, expected }) => {
    expect(actual).toEqual(expected);
  },
);
