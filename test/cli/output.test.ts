import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { snakeKeys } from "../../src/cli/output.ts";
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

it.each(listExamples("src/cli/output.ts").flatMap((one) => runExample(one, { snakeKeys })))(
  "names fields of JSON: $line",
  ({ actual, expected }) => {
    expect(actual).toEqual(expected);
  },
);
