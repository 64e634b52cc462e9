import { expect, onTestFinished, test } from "vitest";
import { connect, type Sql } from "../../../src/db/client.ts";
import { readForecastsForExport, readScoresForExport } from "../../../src/forecasts/chain/export-store.ts";
import { loadTable } from "../../../src/pass/stores/load-store.ts";
import { reviseScores } from "../../../src/pass/stores/revise-scores-store.ts";
import { stateOf } from "../../../src/pass/compute/stored-state.ts";
import { FIRST_PREVIOUS_HASH, forecastHash, historyHash, scoreHash } from "../../../src/record/hashes.ts";
import { readRoundsForExport } from "../../../src/rounds/lists/export-store.ts";
import { createDatabase } from "../../support/database.ts";
import { makeTable } from "../../support/make.ts";
import { givePasses, timesFrom } from "../../support/passes.ts";

const ROUNDS = Array.from({ length: 700 }, (_, at) => [187, 120, 1_450, 301, 100][(at * at + 3 * at) % 5] ?? 187);

async function createWorld(): Promise<{ sql: Sql; table: { id: number } }> {
  const database = await createDatabase();
  const sql = connect(database.url, { name: "test", max: 2 });
  onTestFinished(async () => {
    await sql.end({ timeout: 5 });
    await database.drop();
  });
  return { sql, table: await makeTable(sql) };
}

test("every hash of an export follows from the fields of its line and the hash before it", async () => {
  const { sql, table } = await createWorld();
  const times = (from: number) => timesFrom(Date.UTC(2026, 10, 21) + from * 2_000, 2_000);
  await givePasses(sql, table, ROUNDS.slice(0, 300), { times: times(0) });
  await sql`
    insert into conflicts (table_id, round_id, kept_hundredths, other_hundredths, other_raw)
    values (${table.id}, '250', 187, 190, '1.90')`;
  await sql.begin((tx) => reviseScores(tx, table.id));
  const stored = await sql.begin((tx) => loadTable(tx, table.id));
  if (stored === null) throw new Error("the table has no head");
  await givePasses(sql, table, ROUNDS.slice(300), { from: stateOf(stored), times: times(300) });

  let hash = FIRST_PREVIOUS_HASH;
  const rounds = (await Array.fromAsync(readRoundsForExport(sql, table.id))).flat();
  expect(rounds).toHaveLength(ROUNDS.length);
  for (const round of rounds) {
    hash = historyHash(hash, round);
    expect(round.history_hash).toBe(hash);
  }
  hash = FIRST_PREVIOUS_HASH;
  const forecasts = (await Array.fromAsync(readForecastsForExport(sql, table.id))).flat();
  for (const forecast of forecasts) {
    expect(forecast.prev_hash).toBe(hash);
    hash = forecastHash(hash, forecast);
    expect(forecast.hash).toBe(hash);
  }
  hash = FIRST_PREVIOUS_HASH;
  const scores = (await Array.fromAsync(readScoresForExport(sql, table.id))).flat();
  for (const score of scores) {
    expect(score.prev_hash).toBe(hash);
    hash = scoreHash(hash, score);
    expect(score.hash).toBe(hash);
  }
  expect(scores.filter(({ rev }) => rev === "2").length).toBeGreaterThan(0);
  expect(scores.at(-1)?.rev).toBe("1");
  const newest = new Map(scores.map((score) => [score.forecast_id, score]));
  for (const { forecast_id, status, outcome, scored_at } of forecasts) {
    const score = newest.get(forecast_id);
    expect({ status, outcome, scored_at }).toEqual({
      status: score?.status ?? "open",
      outcome: score?.outcome ?? "",
      scored_at: score?.scored_at ?? "",
    });
  }
  expect(forecasts.length).toBeGreaterThan(ROUNDS.length);
});
