import { describe, expect, test } from "vitest";
import scoreAccuracy from "../../jobs/score-accuracy.ts";
import { generatedRounds } from "../forecasts/streams.ts";
import { verify } from "../../src/forecasts/verify/verify.ts";
import { createWorld, type World } from "../forecasts/world.ts";
import { testContext } from "../support/context.ts";

/** How many hours of the world's table are noted and not summed. */
async function countNoted({ sql, tableId }: World): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::integer as n from hours_to_sum where table_id = ${tableId}`;
  return row?.n ?? 0;
}

describe("score-accuracy", () => {
  test("holds each forecast against its round, sums the hour and shows the periods", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    let announced = 0;
    for (const hundredths of [150, 230, 1200, 150]) {
      await world.play([hundredths]);
      await world.issue();
    }
    const counts = await scoreAccuracy.run({ house: world.house }, { ...context, published: () => (announced += 1) });
    expect(counts).toEqual({ scored: 2, voided: 0, windows: 2, hours: 10, published: 50, calibrations: 0 });
    expect(announced).toBe(1);
  });

  test("counts what became void by its reason", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    await world.play([150]);
    await world.play([230]);
    await world.issue();
    await world.play([{ hundredths: 150, afterGap: true }]);
    const counts = await scoreAccuracy.run({ house: world.house }, context);
    expect(counts).toMatchObject({ scored: 0, voided: 1 });
    const { void_gap: gaps = 0 } = counts;
    expect(gaps).toBe((counts["voided"] ?? 0) + (counts["windows"] ?? 0));
    expect(counts).not.toHaveProperty("void_late");
  });

  test("twice is once, and nothing to do is fine", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    const nothing = { scored: 0, voided: 0, windows: 0, hours: 0, published: 0, calibrations: 0 };
    expect(await scoreAccuracy.run({ house: world.house }, context)).toEqual(nothing);
    for (const { hundredths } of generatedRounds(4)) {
      await world.play([hundredths]);
      await world.issue();
    }
    expect(await scoreAccuracy.run({ house: world.house }, context)).toMatchObject({ scored: 2 });
    expect(await scoreAccuracy.run({ house: world.house }, context)).toEqual(nothing);
  });

  test("scores at once, and sums what it scored at most every ten seconds; verify knows what is not summed yet", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    const turn = async () => {
      await world.play([150]);
      await world.issue();
      return scoreAccuracy.run({ house: world.house }, context);
    };
    await world.play([150]);
    await turn();
    expect(await turn()).toMatchObject({ scored: 1, hours: expect.toSatisfy((hours: number) => hours > 0) });
    expect(await turn()).toMatchObject({ scored: 1, hours: 0, published: 0 });
    expect(await countNoted(world)).toBeGreaterThan(0);
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true });

    const ago = world.sql`interval '10 seconds'`;
    await world.sql`update accuracy_series set published_at = published_at - ${ago} where table_id = ${world.tableId}`;
    expect((await scoreAccuracy.sweep?.(context))?.map(({ house }) => house)).toContain(world.house);
    const counts = await scoreAccuracy.run({ house: world.house }, context);
    expect(counts).toMatchObject({ scored: 0, hours: expect.toSatisfy((hours: number) => hours > 0) });
    expect(await countNoted(world)).toBe(0);
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true });
  });

  test("sums the hours of a long pause some at a time, and all of them in one run", async () => {
    const world = await createWorld({ ownDatabase: true });
    const { context } = testContext(world.sql);
    await world.sql`
      insert into hours_to_sum (table_id, model, feature, hour)
      select ${world.tableId}, 'k7@1', 'next_color', date_trunc('hour', now(), 'UTC') - n * interval '1 hour'
      from generate_series(1, 1001) n`;
    expect(await scoreAccuracy.run({ house: world.house }, context)).toMatchObject({ hours: 1001, published: 5 });
    expect(await countNoted(world)).toBe(0);
  });

  test("leaves no score out of an hour that is not noted: verify says so", async () => {
    const world = await createWorld({ ownDatabase: true });
    const { context } = testContext(world.sql);
    await world.play([150]);
    for (let round = 0; round < 3; round++) {
      await world.play([150]);
      await world.issue();
      await scoreAccuracy.run({ house: world.house }, context);
    }
    expect(await countNoted(world)).toBeGreaterThan(0);
    await world.sql`delete from hours_to_sum`;
    expect(await verify(world.sql)).toMatchObject({ ok: false, first_failure: { kind: "accuracy" } });
  });

  test("is found by its sweep as long as something is to be scored or shown", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    const swept = async () => {
      const found = (await scoreAccuracy.sweep?.(context)) ?? [];
      return found.some(({ house }) => house === world.house);
    };
    await world.play([150, 150]);
    await world.play([150]);
    await world.issue();
    expect(await swept()).toBe(false);
    await world.play([150]);
    expect(await swept()).toBe(true);
    await world.score();
    expect(await swept()).toBe(true); // the sums are to be shown
    await scoreAccuracy.run({ house: world.house }, context);
    expect(await swept()).toBe(false);
  });

  test("asks for a calibration of each table that is due, and hands it on", async () => {
    const world = await createWorld({ tables: [{}, {}] });
    const { context, enqueued } = testContext(world.sql);
    await world.play(generatedRounds(1000).map(({ hundredths }) => hundredths));
    await world.play([150], world.tableIds[1]);
    await world.issue();
    expect((await scoreAccuracy.sweep?.(context))?.map(({ house }) => house)).toContain(world.house);
    expect(await scoreAccuracy.run({ house: world.house }, context)).toMatchObject({ calibrations: 1 });
    expect(enqueued).toEqual([expect.stringMatching(/^calibrate-table \{"run":"\d+"\}$/)]);
    expect(await scoreAccuracy.run({ house: world.house }, context)).toMatchObject({ calibrations: 0 });
  });

  test("stops between two transactions when its time is up", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql, { signal: AbortSignal.abort(new Error("out of time")) });
    await expect(scoreAccuracy.run({ house: world.house }, context)).rejects.toThrow("out of time");
  });
});
