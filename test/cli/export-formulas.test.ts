import { expect, it } from "vitest";
import { connect } from "../../src/db/client.ts";
import * as csv from "../../src/csv.ts";
import { addRounds } from "../api/world.ts";
import { createDatabase } from "../support/database.ts";
import { listExamples, runExample } from "../support/examples.ts";
import { makeTable } from "../support/make.ts";
import { roundhouse } from "./world.ts";

it("[FORMULAS] an export holds no formula that a house sent, unless it is asked for raw", async () => {
  const database = await createDatabase();
  const sql = connect(database.url, { name: "test", max: 1 });
  try {
    await makeTable(sql, { round_ids: "opaque" });
    const ids = ['=HYPERLINK("https://evil.example","x")', "+1+1", "-2+3", "@SUM(A1)", "＝1"];
    await addRounds(
      sql,
      "alpha/crash/global",
      ids.map((id) => ({ id })),
    );
    const run = async (...args: string[]) => {
      const { code, stdout } = await roundhouse(["export", "rounds", "--table", "alpha/crash/global", ...args], {
        env: { DATABASE_URL: database.url },
      });
      expect(code).toBe(0);
      return stdout;
    };
    const [plain, raw, jsonl] = [await run(), await run("--raw"), await run("--json")];
    for (const id of ids) {
      expect(plain).toContain(csv.csvField(`'${id}`));
      expect(plain).not.toContain(`,${csv.csvField(id)},`);
      expect(raw).toContain(`,${csv.csvField(id)},`);
      expect(jsonl).toContain(`:${JSON.stringify(id)},`);
    }
  } finally {
    await sql.end();
    await database.drop();
  }
});

it.each(listExamples("src/csv.ts").map((example) => [example.title, example] as const))(
  "the examples of %s hold",
  (_, example) => {
    for (const { actual, ...claim } of runExample(example, csv)) expect({ ...claim, expected: actual }).toEqual(claim);
  },
);
