import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, type Sql, type Transaction } from "../../src/db/client.ts";
import { listLaterForecasts, listReceivedRounds } from "../../src/forecasts/accuracy/hour-facts-store.ts";
import { listOpenWindows } from "../../src/forecasts/issue/window-store.ts";
import { listDueWindows } from "../../src/forecasts/score/due-window-store.ts";
import { listDueNextColors } from "../../src/forecasts/score/score-store.ts";
import { limitStatements } from "../../src/ledger/check-store.ts";
import { listKnown } from "../../src/rounds/known-store.ts";
import { listHashOwners } from "../../src/rounds/proof-range-store.ts";
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

describe("while a table is new, what is planned once goes by the index that was meant for it", () => {
  const hour = { tableId: 1, model: "k7@1", feature: "next_color", hour: "2026-01-01T00:00:00Z" };
  const span = { tableId: 1, afterSeq: 1n, upToSeq: 2n };
  const asked = { tableId: 1, model: "k7@1", features: ["next_color"] };
  test.each<[string, (tx: Transaction) => Promise<unknown>, Record<string, string[]>]>([
    ["who has a hash", (tx) => listHashOwners(tx, 1, ["a", "b"]), { rounds: ["proof_hash_idx"] }],
    [
      "which rounds are known",
      (tx) => listKnown(tx, [{ tableId: 1, roundId: "1" }]),
      { rounds: ["table_id_round_id_key"] },
    ],
    ["next colors that are due", (tx) => listDueNextColors(tx, [1], 10), { forecasts: ["pkey"] }],
    ["windows that are due", (tx) => listDueWindows(tx, [span], 10), { forecasts: ["pkey"] }],
    ["windows that are open", (tx) => listOpenWindows(tx, [asked]), { forecasts: ["pkey"] }],
    [
      "forecasts of an hour after its mark",
      (tx) => listLaterForecasts(tx, [{ ...hour, afterCutoff: 1n }]),
      { forecasts: ["table_id_model_feature_cutoff_seq_key"], scores: ["pkey"] },
    ],
    [
      "rounds received in an hour",
      (tx) => listReceivedRounds(tx, [hour]),
      {
        rounds: ["table_id_received_at_seq_idx", "table_id_seq_idx"],
        forecasts: ["table_id_model_feature_cutoff_seq_key"],
      },
    ],
  ])("%s", async (_, call, indexes) => {
    const own = connect(database.url, { name: "worker", max: 1, isSteady: true });
    await own.begin(call);
    const prepared = await own<
      { statement: string }[]
    >`select statement from pg_prepared_statements order by prepare_time`;
    await own.end();
    const [statement = ""] = prepared.map((row) => row.statement).filter((text) => /^\s*select/.test(text));
    const rows = await sql.unsafe<{ "QUERY PLAN": string }[]>(`explain (generic_plan) ${statement}`);
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    expect(plan).not.toMatch(/Bitmap|Seq Scan on (?:rounds|forecasts|scores)/);
    // a list that is no condition of its index would have all of a table read
    expect(plan).not.toMatch(/Filter: .*(?:seq|round_id) = ANY/);
    for (const [table, meant] of Object.entries(indexes)) {
      const used = [...plan.matchAll(new RegExp(`using ${table}_\\d\\d_(\\w+) on`, "g"))].map(([, index]) => index);
      expect(new Set(used)).toEqual(new Set(meant));
    }
  });
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
