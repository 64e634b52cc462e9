import { expect, it } from "vitest";
import { listHeld } from "../../src/pass/stores/known-store.ts";
import { openTestDatabase } from "../support/database.ts";
import { makeTable } from "../support/make.ts";
import { givePasses, timesFrom } from "../support/passes.ts";

const { sql } = await openTestDatabase({ max: 3 });

/** Multipliers of every band, in hundredths. */
const MULTIPLIERS = [187, 340, 101, 1250, 222, 100, 5000, 150, 1001];

function rounds(count: number): number[] {
  return Array.from({ length: count }, (_, n) => MULTIPLIERS[(n * n + n) % MULTIPLIERS.length] ?? 100);
}

it("writes rows that every guard accepts", async () => {
  const table = await makeTable(sql);
  const first = await givePasses(sql, table, rounds(40));
  const state = await givePasses(sql, table, rounds(30), { from: first, atOnce: 3 });
  const [stored] = await sql`
    select
      (select count(*)::integer from rounds where table_id = ${table.id}) as rounds,
      (select count(*)::integer from forecast_sets where table_id = ${table.id}) as sets,
      (select count(*)::integer from forecasts where table_id = ${table.id}) as forecasts,
      (select count(*)::integer from scores where table_id = ${table.id}) as scores,
      (select count(*)::integer from open_forecasts where table_id = ${table.id}) as open`;
  expect(stored).toMatchObject({ rounds: 70, sets: 49 });
  expect(stored).toMatchObject({ forecasts: Number(state.head.forecastSeq), open: state.open.length });
  expect(stored?.["scores"]).toBe(Number(state.head.forecastSeq) - state.open.length);
});

it("writes rounds of the past with their sets and scores", async () => {
  const table = await makeTable(sql, {}, { id: "past" });
  const state = await givePasses(sql, table, rounds(100), { times: timesFrom(Date.now() - 3_600_000, 4000) });
  expect(state.head).toMatchObject({ lastOrdinal: 100n, setSeq: 100n });
});

it("loads a round that is held back behind more quarantined items without ids than it loads", async () => {
  const table = await makeTable(sql);
  await sql`
    insert into quarantine (table_id, code, reason, round_id, item, item_sha256, last_seen_at)
    select
      ${table.id}::integer, 'bad_item', 'test', case when n = 1 then '7' end, '{}', n::text,
      clock_timestamp() - (300 - n) * interval '1 second'
    from generate_series(1, 300) n`;
  expect(await listHeld(sql, [table.id])).toMatchObject([{ table_id: table.id, round_id: "7" }]);
});
