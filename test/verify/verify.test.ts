import { describe, expect, test } from "vitest";
import { verify } from "../../src/verify/verify.ts";
import { fullWorld } from "../forecasts/full-world.ts";
import { generatedRounds } from "../forecasts/streams.ts";
import { createWorld } from "../forecasts/world.ts";
import { timesFrom } from "../support/passes.ts";

describe("verify", () => {
  test("reports what it checked when all is well", async () => {
    const world = await fullWorld();
    const [counts] = await world.sql`
      select
        (select count(*)::integer from rounds) as rounds,
        (select count(*)::integer from forecasts) as forecasts,
        (select count(*)::integer from scores) as scores,
        (select count(*)::integer from accuracy_hours) + (select count(*)::integer from accuracy_days)
          + (select count(*)::integer from accuracy_periods) as accuracy_rows`;
    expect(await verify(world.sql)).toEqual({
      ok: true,
      checked: { ...counts, calibrations: 0, replayed_rounds: 0, log_entries: 0 },
      first_failure: null,
      unstated: { since: expect.any(String) as string, reason: "no log" },
    });
    const kinds = await world.sql<{ reason: string }[]>`select distinct reason from scores order by reason`;
    expect(kinds.map(({ reason }) => reason)).toEqual(["", "conflict", "gap"]);
    expect(await world.sql`select from score_revisions`).not.toHaveLength(0);
    expect(await world.sql`select from model_snapshots`).toHaveLength(2);
    const one = await verify(world.sql, { tableId: world.tableIds[1] });
    expect(one).toMatchObject({ ok: true, checked: { rounds: 70 } });
  });

  test("is fine with an empty table, and with one that has only rounds", async () => {
    const world = await createWorld();
    expect(await verify(world.sql, { tableId: world.tableId })).toEqual({
      ok: true,
      checked: {
        rounds: 0,
        forecasts: 0,
        scores: 0,
        accuracy_rows: 0,
        calibrations: 0,
        replayed_rounds: 0,
        log_entries: 0,
      },
      first_failure: null,
    });
    await world.play([150, 160]);
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true, checked: { rounds: 2 } });
  });

  test("reports its progress", async () => {
    const world = await createWorld();
    for (const { hundredths } of generatedRounds(5)) await world.play([hundredths]);
    const told: string[] = [];
    await verify(world.sql, {
      tableId: world.tableId,
      progress: (table, done, total) => told.push(`${table} ${done}/${total}`),
    });
    const [row] = await world.sql<{ n: number }[]>`
      select (last_seq + forecast_seq)::integer as n
      from table_heads
      where table_id = ${world.tableId}`;
    expect(told).toEqual([`${world.tableName} ${row?.n}/${row?.n}`]);
  });

  test("finds the same in threads as without, at the same moment, and reports its progress", async () => {
    const world = await fullWorld();
    const threads = { databaseUrl: world.url, fromRows: 0 };
    const told: number[] = [];
    const found = await verify(world.sql, {
      threads,
      progress: (what, done, total) => {
        if (what !== "log") told.push(done / total);
      },
    });
    expect(found).toMatchObject({ ok: true });
    expect(found).toEqual(await verify(world.sql));
    expect(told.at(-1)).toBe(1);

    for (const tableId of world.tableIds.toReversed()) {
      await world.sql.begin(async (tx) => {
        await tx`set local session_replication_role = replica`;
        await tx`update rounds set color = color + 1 where table_id = ${tableId} and seq = 5`;
      });
      const wrong = await verify(world.sql, { threads });
      expect(wrong.first_failure).toMatchObject({ kind: "round" });
      expect(wrong).toEqual(await verify(world.sql));
    }
  });

  test("holds after each step of a table: what is not summed or settled yet is no failure", async () => {
    const world = await createWorld();
    const isFine = async () => expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true });
    for (const { hundredths } of generatedRounds(3)) {
      await world.play([hundredths]);
      await isFine();
      await world.add();
      await isFine();
    }
    for (const hundredths of [150, 230, 1200]) {
      await world.play([hundredths], world.tableId, { at: { maySettle: false } });
      await isFine();
    }
    await world.play([150]);
    await isFine();
  });

  test("accepts an instant crash in a form that the houses file no longer has, but no other result as one", async () => {
    const world = await createWorld();
    await world.play([150, 100]);
    const verifyWith = async (raw: string) => {
      await world.sql.begin(async (tx) => {
        await tx`set local session_replication_role = replica`;
        await tx`update rounds set raw_value = ${raw} where table_id = ${world.tableId} and hundredths = 100`;
      });
      return verify(world.sql, { tableId: world.tableId });
    };
    expect(await verifyWith("bust")).toMatchObject({ ok: true });
    expect(await verifyWith("57.3")).toMatchObject({
      ok: false,
      first_failure: { expected: "5730 hundredths from 57.3" },
    });
  });

  test("fails for a table whose head names no stored palette, and for a chosen one without a head", async () => {
    const world = await createWorld({ ownDatabase: true, tables: [{}, {}] });
    const [first = 0, empty = 0] = world.tableIds;
    await world.play([150, 160]);
    const tamper = (statement: string) =>
      world.sql.begin(async (tx) => {
        await tx`set local session_replication_role = replica`;
        await tx.unsafe(statement);
      });
    await tamper(`delete from table_heads where table_id = ${empty}`);
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    expect(await verify(world.sql, { tableId: empty })).toMatchObject({
      ok: false,
      first_failure: { kind: "table", expected: "a head", found: "none" },
    });
    await tamper(`update table_heads set palette = 999 where table_id = ${first}`);
    for (const tableId of [undefined, first])
      expect(await verify(world.sql, { tableId })).toMatchObject({
        ok: false,
        first_failure: { kind: "table", id: world.tableName, expected: "a palette with the id 999", found: "none" },
      });
  });

  test.each([
    ["with a set after each round", 0],
    ["after a gap that no set followed", 2],
  ])("accepts rounds and sets after the clock of the database was set back, %s", async (_, unissued) => {
    const world = await createWorld();
    const rounds = generatedRounds(40).map(({ hundredths }, at) => ({ hundredths, afterGap: at === 19 }));
    const start = Date.now() - 3_600_000;
    const play = (from: number, to: number, clockMs: number, mayIssue = true) =>
      world.play(rounds.slice(from, to), world.tableId, {
        atOnce: 1,
        times: timesFrom(clockMs, 15_000),
        at: { mayIssue },
      });
    const before = 20 - unissued;
    await play(0, before, start);
    if (unissued > 0) await play(before, 20, start + before * 15_000, false);
    await play(20, 40, start + 20 * 15_000 - 600_000);
    const steps = await world.sql`
      select
      from (
        select issued_at < lag(issued_at) over (order by cutoff_seq) as is_back
        from forecast_sets
        where table_id = ${world.tableId}
      ) s
      where is_back`;
    expect(steps).toHaveLength(1);
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true });
  });
});
