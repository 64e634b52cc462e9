import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { limitStatements } from "../../src/ledger/check-store.ts";
import { fillGapsStatement } from "../../src/rounds/gaps/gaps-store.ts";
import { createDatabase } from "../support/database.ts";

let database: Awaited<ReturnType<typeof createDatabase>>;
let sql: Sql;
beforeAll(async () => {
  database = await createDatabase({ isUncounted: true });
  sql = connect(database.url, { name: "worker", max: 1, isSteady: true });
});
afterAll(async () => {
  await sql.end();
  await database.drop();
});

describe("what a worker plans once, while a table is new", () => {
  // on the plan of a new table each of these read all payloads of two days, or all rounds
  test.each([
    "update payloads p set items = 1 from unnest($1::integer[], $2::timestamptz[]) as m (table_id, received_at) where p.table_id = m.table_id and p.received_at = m.received_at",
    "select r.seq from unnest($1::integer[], $2::text[]) as asked (table_id, round_id) join rounds r on r.table_id = asked.table_id and r.round_id = asked.round_id",
    "select s.hashes from unnest($1::integer[], $2::bigint[]) as asked (table_id, seq) join forecast_sets s on s.table_id = asked.table_id and s.cutoff_seq = asked.seq",
  ])("is a look-up for each row: %s", async (statement) => {
    const rows = await sql.unsafe<{ "QUERY PLAN": string }[]>(`explain (generic_plan) ${statement}`);
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    expect(plan).toContain("Nested Loop");
    expect(plan).toMatch(/Index (?:Only )?Scan/);
    expect(plan).not.toMatch(/Hash Join|Merge Join|Seq Scan on (?:payloads|rounds|forecast_sets)/);
  });
});

test("late rounds are compared only with unfilled gaps that contain them", async () => {
  const rows = await sql<{ "QUERY PLAN": string }[]>`explain ${fillGapsStatement(sql, "{1}", "{5}")}`;
  const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
  expect(plan).toContain("Index Scan using gaps_unfilled on gaps open");
  expect(plan).toContain("(to_number >= l.number) AND (from_number <= l.number)");
});

test("the ledger's check joins whole tables all the same", async () => {
  await sql.begin(async (tx) => {
    await limitStatements(tx, 1_000);
    const [row] = await tx<{ hash: string; merge: string }[]>`
      select current_setting('enable_hashjoin') as hash, current_setting('enable_mergejoin') as merge`;
    expect(row).toEqual({ hash: "on", merge: "on" });
  });
  const [after] = await sql<{ hash: string }[]>`select current_setting('enable_hashjoin') as hash`;
  expect(after?.hash).toBe("off");
});
