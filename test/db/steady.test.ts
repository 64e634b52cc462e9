import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { limitStatements } from "../../src/ledger/check-store.ts";
import { createDatabase } from "../support/database.ts";

let database: Awaited<ReturnType<typeof createDatabase>>;
let sql: Sql;
beforeAll(async () => {
  database = await createDatabase();
  sql = connect(database.url, { name: "worker", max: 1, isSteady: true });
});
afterAll(async () => {
  await sql.end();
  await database.drop();
});

describe("what a worker plans once, while a table is new", () => {
  // on the plan of a new table each of these read all answers of two days, or all rounds
  test.each([
    "update payloads p set items = 1 from jsonb_to_recordset($1) as m (id bigint, received_at timestamptz) where p.received_at = m.received_at and p.id = m.id",
    "select r.seq from unnest($1::integer[], $2::text[]) as asked (table_id, round_id) join rounds r on r.table_id = asked.table_id and r.round_id = asked.round_id",
    "select f.hash from unnest($1::integer[], $2::bigint[]) as asked (table_id, seq) join forecasts f on f.table_id = asked.table_id and f.seq = asked.seq",
  ])("is a look-up for each row: %s", async (statement) => {
    const rows = await sql.unsafe<{ "QUERY PLAN": string }[]>(`explain (generic_plan) ${statement}`);
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    expect(plan).toContain("Nested Loop");
    expect(plan).toMatch(/Index (?:Only )?Scan/);
    expect(plan).not.toMatch(/Hash Join|Merge Join|Seq Scan on (?:payloads|rounds|forecasts)/);
  });
});

test("what comes and goes is looked up by itself, so that what went is not met again", async () => {
  const rows = await sql<{ "QUERY PLAN": string }[]>`
    explain (generic_plan)
    select feature
    from open_forecasts
    where table_id = 1`;
  const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
  expect(plan).toContain("Index Scan using open_forecasts_pkey");
  expect(plan).not.toContain("Bitmap");
});

test("who has a hash is found by the index that knows hashes", async () => {
  const rows = await sql<{ "QUERY PLAN": string }[]>`
    explain (generic_plan)
    select owner.round_id
    from unnest(array['a', 'b']) as asked (hash)
    cross join lateral (
      select round_id
      from rounds
      where table_id = 1
        and proof_hash = asked.hash
      offset 0
    ) owner`;
  expect(rows.map((row) => row["QUERY PLAN"]).join("\n")).toContain("proof_hash_idx");
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
