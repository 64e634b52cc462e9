import { afterAll, beforeAll, expect, it } from "vitest";
import { connect, openPipeline, type Pipeline, type Sql } from "../../src/db/client.ts";
import type { ScoreSetRow } from "../../src/pass/compute/rows.ts";
import { readPastForecast } from "../../src/site/houses/table-store.ts";
import { type CoreTable, fromNow, makeCoreTables } from "../support/core-rows.ts";
import { createCoreDatabase } from "../support/core-schema.ts";

const GAP = 1;
let database: Awaited<ReturnType<typeof createCoreDatabase>>;
let sql: Sql;
let pipeline: Pipeline;
let tables: CoreTable[];

beforeAll(async () => {
  database = await createCoreDatabase();
  sql = connect(database.url, { name: "test", max: 2 });
  pipeline = openPipeline(database.url, { name: "pass", max: 1 });
  tables = await makeCoreTables(sql, 3);
});

afterAll(async () => {
  await pipeline.end({ timeout: 1 });
  await sql.end({ timeout: 1 });
  await database.drop();
});

/** Plays a round, forecasts the next, and settles that forecast by a round of 12.34. */
async function settle(
  table: CoreTable,
  { reason = 0, afterGap = false, ...changed }: { reason?: number; afterGap?: boolean } & Partial<ScoreSetRow>,
) {
  await table.play(pipeline);
  const set = await table.issue(pipeline);
  const round = table.round({ hundredths: 1_234, color: 2, afterGap });
  const scores = table.scores(round, [{ set, place: 0, reason }], changed);
  await table.write(pipeline, { rounds: [round], scoreSets: [scores], head: table.afterRound(round) });
  await table.issue(pipeline, []);
  return set;
}

const past = (table: CoreTable) => sql.begin((tx) => readPastForecast(tx, table.id, { rounds: 1, seconds: -1 }));

it("shows the round that settled a forecast, and its color", async () => {
  const [table] = tables;
  const set = await settle(table!, { outcomes: [2] });
  expect(await past(table!)).toMatchObject({
    afterRoundId: set.cutoffRoundId,
    outcome: 2,
    multiplier: "12.34",
    reason: "",
  });
});

it("shows no outcome of a forecast whose round was missed", async () => {
  const table = tables[1]!;
  const set = await settle(table, { reason: GAP, afterGap: true });
  expect(await past(table)).toMatchObject({ afterRoundId: set.cutoffRoundId, outcome: null, reason: "gap" });
});

it("shows a forecast by its newest score", async () => {
  const table = tables[2]!;
  const set = await settle(table, { outcomes: [2] });
  await sql`
    insert into score_revisions (
      table_id, forecast_seq, rev, cutoff_seq, feature, settled_seq, status, reason, scored_at, prev_hash, hash
    )
    select table_id, forecast_seqs[1], 2, cutoff_seqs[1], 0, settled_seq, 1, 3, ${fromNow(0)}, prev_hash, prev_hash
    from score_sets
    where table_id = ${table.id}`;
  expect(await past(table)).toMatchObject({ afterRoundId: set.cutoffRoundId, outcome: null, reason: "conflict" });
});
