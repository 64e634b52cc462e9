import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { CHECKLIST } from "./checklist.ts";

const TESTS = join(import.meta.dirname, "..");

/** The ids in titles of tests, file by file: `[API7][V2] a name`. */
const shown = new Map(
  globSync("**/*.test.ts", { cwd: TESTS }).map((file) => {
    const titles = readFileSync(join(TESTS, file), "utf8").match(/"(?:\[[A-Z][A-Z0-9-]*\])+ /g) ?? [];
    return [file.replace(/\.test\.ts$/, ""), new Set(titles.join("").match(/[A-Z][A-Z0-9-]*/g))] as const;
  }),
);

it.each(CHECKLIST)("$id is shown: $control", ({ id, shownIn }) => {
  expect(shownIn.length).toBeGreaterThan(0);
  for (const file of shownIn)
    expect([...(shown.get(file) ?? [])], `expected a title with [${id}] in ${file}`).toContain(id);
});

it("no title has an id that the checklist does not know there, and no id is twice in it", () => {
  const known = new Map(CHECKLIST.map(({ id, shownIn }) => [id, shownIn]));
  expect(known.size).toBe(CHECKLIST.length);
  const unknown = [...shown].flatMap(([file, ids]) =>
    [...ids].filter((id) => !known.get(id)?.includes(file)).map((id) => `${file}: ${id}`),
  );
  expect(unknown).toEqual([]);
});
