import { describe, expect, test } from "vitest";
import housekeep from "../../jobs/housekeep.ts";
import scoreAccuracy from "../../jobs/score-accuracy.ts";
import { listPublished } from "../../src/forecasts/accuracy/published-store.ts";
import { listUnscored } from "../../src/forecasts/score/unscored-store.ts";
import { verify } from "../../src/verify/verify.ts";
import { generatedRounds } from "../forecasts/streams.ts";
import { createWorld, type World } from "../forecasts/world.ts";
import { deletePause, insertPause } from "../../src/queue/store.ts";
import { testContext } from "../support/context.ts";

const NOTHING = { sets: 0, scores: 0, revisions: 0, calibrations: 0 };

async function isSwept(world: World): Promise<boolean> {
  const found = (await scoreAccuracy.sweep?.(testContext(world.sql).context)) ?? [];
  return found.some(({ house }) => house === world.house);
}

/** Lets the time between two changes of the sums pass. */
async function waitForTurn({ sql, tableId }: World): Promise<void> {
  await sql`update accuracy_marks set updated_at = updated_at - interval '10 seconds' where table_id = ${tableId}`;
}

async function nextColors({
  sql,
  tableId,
}: World): Promise<{ forecasts: bigint; n: bigint; pending: bigint } | undefined> {
  const { rows } = await listPublished(sql, { tableIds: [tableId], periods: ["all"], feature: "next_color" });
  return rows[0]?.sums;
}

// each round here settles a forecast of the next color and a window of one round
describe("score-accuracy", () => {
  test("adds what was issued and settled, notifies the readers, and does nothing twice", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    const published: number[] = [];
    const run = () =>
      scoreAccuracy.run({ house: world.house }, { ...context, published: (ids = []) => void published.push(...ids) });
    expect(await run()).toEqual(NOTHING);
    for (const hundredths of [150, 230, 1200, 150]) await world.play([hundredths]);
    expect(await isSwept(world)).toBe(true);
    expect(await run()).toEqual({ ...NOTHING, sets: 3, scores: 2 });
    expect(published).toEqual([world.tableId]);
    expect(await nextColors(world)).toMatchObject({ forecasts: 3n, n: 2n });
    expect(await isSwept(world)).toBe(false);
    expect(await run()).toEqual(NOTHING);
    expect(published).toEqual([world.tableId]);
  });

  test("adds to a table at most every ten seconds", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    for (const hundredths of [150, 230, 1200]) await world.play([hundredths]);
    await scoreAccuracy.run({ house: world.house }, context);
    await world.play([150]);
    expect(await isSwept(world)).toBe(false);
    expect(await scoreAccuracy.run({ house: world.house }, context)).toEqual(NOTHING);
    await waitForTurn(world);
    expect(await isSwept(world)).toBe(true);
    expect(await scoreAccuracy.run({ house: world.house }, context)).toEqual({ ...NOTHING, sets: 1, scores: 1 });
  });

  test("settles what ended while settling was paused, without another response", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    await world.play([150]);
    await world.play([230]);
    await world.play([1200], world.tableId, { at: { maySettle: false } });
    expect(await world.sql`select from score_sets where table_id = ${world.tableId}`).toHaveLength(0);
    expect(await isSwept(world)).toBe(true);
    expect(await scoreAccuracy.run({ house: world.house }, context)).toMatchObject({ sets: 2, scores: 1, settled: 2 });
    expect(await nextColors(world)).toMatchObject({ forecasts: 2n, n: 1n });
    expect(await scoreAccuracy.run({ house: world.house }, context)).toEqual(NOTHING);
  });

  test("shows what ended while settling was paused as pending, and verify fails for it after five minutes", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    for (const hundredths of [150, 230]) await world.play([hundredths]);
    await scoreAccuracy.run({ house: world.house }, context);
    const before = await nextColors(world);
    for (const hundredths of [1200, 140, 180])
      await world.play([hundredths], world.tableId, { at: { maySettle: false } });
    expect(before?.pending).toBe(1n);
    expect((await nextColors(world))?.pending).toBe(4n);
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    expect(await listUnscored(world.sql)).toEqual([]);
    expect(await verify(world.sql, { unscoredMinutes: 0 })).toMatchObject({
      ok: false,
      first_failure: { kind: "score", id: expect.stringMatching(/^f\d+-\d+$/) as string, found: "none" },
    });
    expect(await listUnscored(world.sql, { minutes: 0 })).toMatchObject([{ table: world.tableName }]);
    await world.play([150]);
    await waitForTurn(world);
    await scoreAccuracy.run({ house: world.house }, context);
    expect((await nextColors(world))?.pending).toBe(1n);
    expect(await verify(world.sql, { unscoredMinutes: 0 })).toMatchObject({ ok: true });
  });

  test("raises an alert five minutes after a forecast ended without a score, unless staff paused the queue", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    for (const hundredths of [150, 230, 140])
      await world.play([hundredths], world.tableId, { at: { maySettle: false } });
    await world.sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`
        update rounds
        set
          absent_at = absent_at - interval '1 hour',
          requested_at = requested_at - interval '1 hour',
          received_at = received_at - interval '1 hour'
        where table_id = ${world.tableId}`;
    });
    const openAlerts = async () => {
      await housekeep.run({ kind: "unscored" }, context);
      return world.sql`
        select subject
        from alerts
        where kind = 'unscored'
          and subject = ${world.tableName}
          and closed_at is null`;
    };
    await insertPause(world.sql, { queue: "score-accuracy", by: "ana", reason: "maintenance", until: null });
    expect(await openAlerts()).toHaveLength(0);
    await deletePause(world.sql, "score-accuracy", null);
    expect(await openAlerts()).toHaveLength(1);
  });

  test("counts as pending in a period what was issued in it, while settling is paused", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    for (const hundredths of [150, 230]) await world.play([hundredths]);
    await scoreAccuracy.run({ house: world.house }, context);
    for (const hundredths of [1200, 140, 180])
      await world.play([hundredths], world.tableId, { at: { maySettle: false } });
    for (const [round, days] of [
      ["1003", 3],
      ["1004", 20],
    ] as const) {
      await world.sql`
        update forecast_sets
        set issued_at = issued_at - ${days} * interval '1 day'
        where table_id = ${world.tableId}
          and cutoff_round_id = ${round}`;
    }
    const { rows } = await listPublished(world.sql, { tableIds: [world.tableId], feature: "next_color" });
    expect(rows.map(({ period, sums }) => [period, sums.pending])).toEqual([
      ["24h", 2n],
      ["7d", 3n],
      ["30d", 4n],
      ["90d", 4n],
      ["all", 4n],
    ]);
  });

  test("lists a window that ended and was left out of the scores of its round, and verify fails for it", async () => {
    const world = await createWorld({ ownDatabase: true });
    for (const hundredths of [150, 230, 1200]) await world.play([hundredths]);
    const { sql, tableId } = world;
    expect(await verify(sql, { unscoredMinutes: 0 })).toMatchObject({ ok: true });
    await sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`
        update score_sets
        set
          forecast_seqs = forecast_seqs[1:1],
          cutoff_seqs = cutoff_seqs[1:1],
          features = features[1:1],
          statuses = statuses[1:1],
          reasons = reasons[1:1],
          outcomes = outcomes[1:1],
          hashes = substr(hashes, 1, 32)
        where table_id = ${tableId}`;
      await tx`
        update table_heads h
        set
          has_ended = true,
          score_hash = s.hashes
        from score_sets s
        where s.table_id = ${tableId}
          and h.table_id = ${tableId}`;
    });
    expect(await verify(sql)).toMatchObject({ ok: true });
    expect(await listUnscored(sql, { minutes: 0 })).toMatchObject([{ forecastId: `f${tableId}-2` }]);
    expect(await verify(sql, { unscoredMinutes: 0 })).toMatchObject({
      ok: false,
      first_failure: { kind: "score", id: `f${tableId}-2`, found: "none" },
    });
  });

  test("does not apply a second result while it does not run, and verify fails for it after five minutes", async () => {
    const world = await createWorld({ ownDatabase: true });
    const { context } = testContext(world.sql);
    for (const hundredths of [150, 230, 1200]) await world.play([hundredths]);
    await world.play([{ roundId: "1003", hundredths: 1300 }]);
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    expect(await verify(world.sql, { unscoredMinutes: 0 })).toMatchObject({
      ok: false,
      first_failure: {
        kind: "score",
        id: `${world.tableName} 1003`,
        found: "a dispute that score-accuracy did not apply",
      },
    });
    const [{ before } = { before: "" }] = await world.sql<{ before: string }[]>`
      select (first_seen_at - interval '1 second')::text as before from conflicts`;
    expect(await verify(world.sql, { unscoredMinutes: 0, asOf: before })).toMatchObject({ ok: true }); // as of a backup
    await scoreAccuracy.run({ house: world.house }, context);
    expect(await verify(world.sql, { unscoredMinutes: 0 })).toMatchObject({ ok: true });
  });

  test("voids the forecasts of a round that was received with another result", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    for (const hundredths of [150, 230, 1200]) await world.play([hundredths]);
    await scoreAccuracy.run({ house: world.house }, context);
    expect(await nextColors(world)).toMatchObject({ n: 1n });
    await world.play([{ roundId: "1003", hundredths: 1300 }]);
    expect(await isSwept(world)).toBe(true);
    await waitForTurn(world);
    expect(await scoreAccuracy.run({ house: world.house }, context)).toMatchObject({ revisions: 2, voided: 2 });
    expect(await nextColors(world)).toMatchObject({ n: 0n, voidConflict: 1n });
  });

  test("names a table with a damaged row in an alert, and adds the others", async () => {
    const world = await createWorld({ tables: [{}, {}], ownDatabase: true });
    const { context, lines } = testContext(world.sql);
    for (const tableId of world.tableIds)
      for (const hundredths of [150, 230, 1200]) await world.play([hundredths], tableId);
    await world.sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`update forecast_sets set p_ppm = array_fill(0, array[cardinality(p_ppm)]) where table_id = ${world.tableId}`;
    });
    expect(await scoreAccuracy.run({ house: world.house }, context)).toMatchObject({ sets: 2, damaged: 1 });
    expect(lines.filter(({ level }) => level === 50)).toEqual([
      expect.objectContaining({
        alert: "scoring",
        subject: world.tableName,
        msg: expect.stringContaining(`run \`roundhouse verify --table ${world.tableName}\``) as string,
      }),
    ]);
  });

  test("settles other tables next to one whose state is damaged, and names that one", async () => {
    const world = await createWorld({ tables: [{}, {}], ownDatabase: true });
    const { context, lines } = testContext(world.sql);
    for (const tableId of world.tableIds) {
      for (const hundredths of [150, 230]) await world.play([hundredths], tableId);
      await world.play([1200], tableId, { at: { maySettle: false } });
    }
    await world.sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`update table_heads set last_seq = last_seq + 7 where table_id = ${world.tableId}`;
    });
    expect(await scoreAccuracy.run({ house: world.house }, context)).toMatchObject({ settled: 2, damaged: 1 });
    expect(lines.filter(({ level }) => level === 50)).toEqual([
      expect.objectContaining({
        alert: "scoring",
        subject: world.tableName,
        msg: expect.stringContaining("forecasts that ended are not settled, since a row is damaged") as string,
      }),
    ]);
    const [, healthy] = world.tableIds;
    expect(await world.sql`select from score_sets where table_id = ${healthy ?? 0}`).toHaveLength(1);
  });

  test("requests a calibration of each table that is due, and hands it on", async () => {
    const world = await createWorld({ tables: [{}, {}] });
    const { context, enqueued } = testContext(world.sql);
    await world.play(generatedRounds(1000).map(({ hundredths }) => hundredths));
    await world.play([150], world.tableIds[1]);
    expect(await isSwept(world)).toBe(true);
    expect(await scoreAccuracy.run({ house: world.house }, context)).toMatchObject({ calibrations: 1 });
    expect(enqueued).toEqual([expect.stringMatching(/^calibrate-table \{"run":"\d+"\}$/)]);
    expect(await scoreAccuracy.run({ house: world.house }, context)).toMatchObject({ calibrations: 0 });
  });

  test("stops between two tables when its time is up", async () => {
    const world = await createWorld();
    for (const hundredths of [150, 230]) await world.play([hundredths]);
    const { context } = testContext(world.sql, { signal: AbortSignal.abort(new Error("out of time")) });
    await expect(scoreAccuracy.run({ house: world.house }, context)).rejects.toThrow("out of time");
  });
});
