import { describe, expect, test } from "vitest";
import { verify } from "../../../src/forecasts/verify/verify.ts";
import { fullWorld } from "../full-world.ts";
import { generatedRounds } from "../streams.ts";
import { createWorld } from "../world.ts";

describe("verify", () => {
  test("says what it checked where all is well", async () => {
    const world = await fullWorld();
    const [counts] = await world.sql`
      select
        (select count(*)::integer from rounds) as rounds,
        (select count(*)::integer from forecasts) as forecasts,
        (select count(*)::integer from scores) as scores,
        (select count(distinct (table_id, model, feature, hour))::integer from accuracy_hours)
          + (select count(*)::integer from published_accuracy) as accuracy_rows`;
    expect(await verify(world.sql)).toEqual({
      ok: true,
      checked: { ...counts, calibrations: 0, replayed_rounds: 0 },
      first_failure: null,
    });
    const kinds = await world.sql<{ status: string }[]>`select distinct status from scores order by status`;
    expect(kinds.map(({ status }) => status)).toEqual(["scored", "void_gap", "void_late", "void_quarantine"]);
    const [revised] = await world.sql<{ n: number }[]>`
      select count(*)::integer as n
      from accuracy_hours
      where rev > 1`;
    expect(revised?.n).toBeGreaterThan(0);
    const one = await verify(world.sql, { tableId: world.tableIds[1] });
    const [own] = await world.sql<{ forecasts: number; windows: number }[]>`
      select count(*)::integer as forecasts, (count(*) filter (where feature like 'window:%'))::integer as windows
      from forecasts
      where table_id = ${world.tableIds[1] ?? 0}`;
    expect(own?.windows).toBeGreaterThan(20);
    expect(one).toMatchObject({ ok: true, checked: { rounds: 12, forecasts: own?.forecasts } });
  });

  test("is fine with an empty database, and with a table that has only rounds", async () => {
    const world = await createWorld();
    expect(await verify(world.sql)).toEqual({
      ok: true,
      checked: { rounds: 0, forecasts: 0, scores: 0, accuracy_rows: 0, calibrations: 0, replayed_rounds: 0 },
      first_failure: null,
    });
    await world.play([150, 160]);
    expect(await verify(world.sql)).toMatchObject({ ok: true, checked: { rounds: 2 } });
  });

  test("tells how far it has come", async () => {
    const world = await createWorld();
    for (const { hundredths } of generatedRounds(5)) await world.turn(hundredths);
    const told: string[] = [];
    await verify(world.sql, {
      tableId: world.tableId,
      progress: (table, done, total) => told.push(`${table} ${done}/${total}`),
    });
    const [row] = await world.sql<{ n: number }[]>`
      select forecast_seq::integer as n
      from tables
      where id = ${world.tableId}`;
    const all = 5 + (row?.n ?? 0);
    expect(told).toEqual([`${world.tableName} 5/${all}`, `${world.tableName} ${all}/${all}`]);
  });

  test("misses the row of an hour in which rounds were received and nothing was forecast", async () => {
    const world = await createWorld();
    for (const { hundredths } of generatedRounds(4)) await world.turn(hundredths);
    await world.moveBack(2);
    await world.play([{ hundredths: 150, absentAgo: null }]);
    await world.score();
    const options = { tableId: world.tableId };
    expect(await verify(world.sql, options)).toMatchObject({ ok: true });
    const [gone] = await world.sql<{ hour: string }[]>`
      delete from accuracy_hours
      where table_id = ${world.tableId}
        and sums -> 'counts' ->> 'forecasts' = '0'
      returning utc_text(hour) as hour`;
    expect(await verify(world.sql, options)).toMatchObject({
      first_failure: {
        kind: "accuracy",
        id: `${world.tableName} k7@1 next_color ${gone?.hour}`,
        expected: "a row of this hour",
        found: "none",
      },
    });
  });

  test("does not count fresh facts against rows that were summed before them", async () => {
    const world = await fullWorld();
    const games = [150, 230, 1200];
    for (const hundredths of games) {
      await world.play([{ hundredths, roundId: `n${hundredths}`, afterGap: false }], world.tableIds[1]);
      expect(await verify(world.sql)).toMatchObject({ ok: true });
      await world.issue();
      expect(await verify(world.sql)).toMatchObject({ ok: true });
      await world.score();
      expect(await verify(world.sql)).toMatchObject({ ok: true });
    }
  });
});
