import { beforeEach, describe, expect, it } from "vitest";
import type { PassState } from "../../src/pass/compute/state.ts";
import { openTestDatabase } from "../support/database.ts";
import { makeTable, type MadeTable } from "../support/make.ts";
import { givePasses } from "../support/passes.ts";

const { sql } = await openTestDatabase();
let table: MadeTable;
let state: PassState;
let house = 0;
beforeEach(async () => {
  house += 1;
  table = await makeTable(sql, {}, { id: `house-${house}` });
  state = await givePasses(sql, table, [187, 340, 101]);
});

/** One response that lists these results of a round. */
async function respond(roundId: string, results: readonly number[]): Promise<void> {
  const given = results.map((hundredths) => ({ roundId, hundredths }));
  state = await givePasses(sql, table, given, { from: state, atOnce: given.length });
}

const results = (count: number, from: number) => Array.from({ length: count }, (_, n) => from + n);

async function conflicts() {
  return sql<{ round: string; other: number; times: number; further: number }[]>`
    select round_id as round, other_hundredths::integer as other, times, further
    from conflicts
    where table_id = ${table.id}
      and other_raw <> 'earlier'
    order by id`;
}

describe("other results of one round", () => {
  it("in one response are listed up to 20, and further ones are counted", async () => {
    await respond("2", results(5_000, 1_000));
    expect(await conflicts()).toEqual(
      results(20, 1_000).map((other, at) => ({ round: "2", other, times: 1, further: at === 0 ? 4_980 : 0 })),
    );
    await respond("2", [1_019, 1_019, 1_020, 340, 7_000]);
    const after = await conflicts();
    expect(after).toHaveLength(20);
    expect(after[0]).toMatchObject({ times: 1, further: 4_982 });
    expect(after[19]).toMatchObject({ other: 1_019, times: 3 });
  });

  it("that rise with each poll are listed up to 20", async () => {
    for (const result of results(24, 1_000)) await respond("3", [result]);
    const listed = await conflicts();
    expect(listed.map(({ other }) => other)).toEqual(results(20, 1_000));
    expect(listed[0]).toMatchObject({ times: 1, further: 4 });
    const [seen] = await sql`
      select last_seen_at = max(last_seen_at) over () as "isLast" from conflicts where table_id = ${table.id} order by id`;
    expect(seen).toEqual({ isLast: true });
  });

  it("are listed again once the earlier ones are decided", async () => {
    await respond("2", results(22, 1_000));
    await sql`update conflicts set decided_at = now() where table_id = ${table.id}`;
    await respond("2", results(22, 3_000));
    const after = await conflicts();
    expect(after.map(({ other }) => other)).toEqual([...results(20, 1_000), ...results(20, 3_000)]);
    expect(after.filter(({ further }) => further > 0)).toMatchObject([
      { other: 1_000, further: 2 },
      { other: 3_000, further: 2 },
    ]);
  });

  it("are listed once per round while the table has 1,000 undecided conflicts", async () => {
    await sql`
      insert into conflicts (table_id, round_id, kept_hundredths, other_hundredths, other_raw)
      select ${table.id}::integer, (n + 100)::text, 1, 2, 'earlier'
      from generate_series(1, 1000) n`;
    await respond("2", [1_001, 1_000]);
    await respond("3", [2_000]);
    await respond("3", [2_001]);
    expect(await conflicts()).toEqual([
      { round: "2", other: 1_001, times: 1, further: 1 },
      { round: "3", other: 2_000, times: 1, further: 1 },
    ]);
    await sql`update conflicts set decided_at = now() where table_id = ${table.id} and other_raw = 'earlier'`;
    await respond("3", [2_002]);
    expect(await conflicts()).toHaveLength(3);
  });
});
