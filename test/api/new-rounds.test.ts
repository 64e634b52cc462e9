import { expect, test } from "vitest";
import { readNewRounds } from "../../src/published/rounds-store.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { createWorld } from "../forecasts/world.ts";

/** How often parts of the table of rounds were read from end to end. */
async function wholeReads(sql: Sql): Promise<number> {
  await sql`select pg_stat_force_next_flush()`;
  const [row] = await sql<{ n: number }[]>`
    select sum(seq_scan)::integer as n
    from pg_stat_user_tables
    where relname = 'rounds'`;
  return row?.n ?? 0;
}

test("an API process that reads what is new looks it up, however many rounds there are", async () => {
  const world = await createWorld({ tables: [{}, {}, {}, {}, {}], ownDatabase: true });
  const rounds = 20_000;
  await world.sql`
    insert into rounds (
      table_id, seq, ordinal, round_id, hundredths, raw_value, palette, color, source, requested_at, received_at, after_gap,
      late, history_hash
    )
    select t.id, n, n, n::text, 150, '1.5', h.palette, 0, 0, now(), now(), false, false, sha256('')
    from tables t
    join table_heads h on h.table_id = t.id
    cross join generate_series(1, ${rounds}::integer) as n
    where t.house_id = ${world.house}`;
  await world.sql`vacuum (analyze) rounds`;
  const sql = connect(world.url, { name: "api", max: 1 });
  try {
    const before = await wholeReads(sql);
    const spans = world.tableIds.map((id) => {
      return { id, roundIds: "consecutive" as const, resets: 0, after: rounds - 2, lastSeq: rounds };
    });
    expect(await readNewRounds(sql, spans)).toHaveLength(10);
    expect(await wholeReads(sql)).toBe(before);
  } finally {
    await sql.end();
  }
});
