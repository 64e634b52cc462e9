import { describe, expect, test } from "vitest";
import issueForecasts from "../../../jobs/issue-forecasts.ts";
import scoreAccuracy from "../../../jobs/score-accuracy.ts";
import { readingHash } from "../../../src/forecasts/readings/reading-memory.ts";
import { testContext } from "../../support/context.ts";
import { generatedRounds } from "../streams.ts";
import { createWorld, type World } from "../world.ts";

async function openAlerts(world: World, kind: string): Promise<{ subject: string; text: string }[]> {
  return world.sql`
    select subject, text from alerts
    where kind = ${kind} and closed_at is null and starts_with(subject, ${`${world.house}/`})`;
}

async function scored(world: World, tableId: number): Promise<number> {
  const [row] = await world.sql<{ n: number }[]>`
    select count(*)::integer as n from scores where table_id = ${tableId} and feature = 'next_color'`;
  return row?.n ?? 0;
}

describe("a damaged forecast", () => {
  test("stops the scoring of its own table alone, is told of once, and is over when it is mended", async () => {
    const world = await createWorld({ tables: [{}, {}, {}] });
    const { context } = testContext(world.sql);
    const [first = 0, bad = 0, last = 0] = world.tableIds;
    for (const x of [150, 180]) for (const id of world.tableIds) await world.play([x], id);
    await world.issue();
    const [before] = await world.sql<{ p: number[] }[]>`
      select p_ppm as p from forecasts where table_id = ${bad} and feature = 'next_color'`;
    await world.sql`update forecasts set p_ppm = '{0,0,1000000}' where table_id = ${bad} and feature = 'next_color'`;
    for (const id of world.tableIds) await world.play([250], id);
    expect(await scoreAccuracy.run({ house: world.house }, context)).toMatchObject({ scored: 2, damaged: 1 });
    expect([await scored(world, first), await scored(world, bad), await scored(world, last)]).toEqual([1, 0, 1]);
    const alerts = await openAlerts(world, "scoring");
    expect(alerts).toMatchObject([
      { subject: expect.stringContaining("/m1"), text: expect.stringContaining("it is not scored") },
    ]);
    await scoreAccuracy.run({ house: world.house }, context);
    expect(await openAlerts(world, "scoring")).toHaveLength(1);
    await world.sql`
      update forecasts set p_ppm = ${before?.p ?? []}::integer[] where table_id = ${bad} and feature = 'next_color'`;
    expect(await scoreAccuracy.run({ house: world.house }, context)).toMatchObject({ scored: 1 });
    expect(await openAlerts(world, "scoring")).toEqual([]);
  });

  test("that is scored already stops the sums of its own table alone", async () => {
    const world = await createWorld({ tables: [{}, {}] });
    const { context } = testContext(world.sql);
    const [good = 0, bad = 0] = world.tableIds;
    for (const { hundredths } of generatedRounds(3)) {
      for (const id of world.tableIds) await world.play([hundredths], id);
      await world.score();
      await world.issue();
    }
    await world.sql`update forecasts set p_ppm = '{0,0,0}' where table_id = ${bad} and feature = 'next_color' and cutoff_seq = 2`;
    for (const id of world.tableIds) await world.play([250], id);
    expect(await scoreAccuracy.run({ house: world.house }, context)).toMatchObject({ damaged: 1 });
    expect([await scored(world, good), await scored(world, bad)]).toEqual([2, 2]);
    const summed = await world.sql<{ id: number; n: string }[]>`
      select table_id as id, sums -> 'counts' ->> 'n' as n
      from accuracy_hours
      where feature = 'next_color' and table_id = any(${world.tableIds}::integer[])
      order by table_id`;
    expect(summed).toEqual([
      { id: good, n: "2" },
      { id: bad, n: "1" },
    ]);
  });
});

describe("a damaged sum", () => {
  test("keeps the accuracy of its own table alone from being published, and is told of until it is mended", async () => {
    const world = await createWorld({ tables: [{}, {}] });
    const { context } = testContext(world.sql);
    const [good = 0, bad = 0] = world.tableIds;
    for (const { hundredths } of generatedRounds(3)) {
      for (const id of world.tableIds) await world.play([hundredths], id);
      await world.score();
      await world.issue();
    }
    const damage = (from: string, to: string) => world.sql`
      update accuracy_hours set sums = replace(sums::text, ${from}, ${to})::jsonb where table_id = ${bad}`;
    await damage('"counts"', '"count"');
    const counts = await scoreAccuracy.run({ house: world.house }, context);
    expect(counts).toMatchObject({ damaged: 1 });
    const shown = async () =>
      (
        await world.sql<{ id: number }[]>`
        select distinct table_id as id from published_accuracy
        where table_id = any(${world.tableIds}::integer[]) order by id`
      ).map(({ id }) => id);
    expect(await shown()).toEqual([good]);
    expect(await openAlerts(world, "scoring")).toMatchObject([
      { subject: expect.stringContaining("/m1"), text: expect.stringContaining("accuracy is not published") },
    ]);
    await damage('"count"', '"counts"');
    await scoreAccuracy.run({ house: world.house }, context);
    expect(await shown()).toEqual([good, bad]);
    expect(await openAlerts(world, "scoring")).toEqual([]);
  });
});

describe("a reading memory that reads well and makes no sense", () => {
  test("keeps no forecast from being issued, is told of, and is made anew from the rounds", async () => {
    const world = await createWorld({ tables: [{}, {}] });
    const { context } = testContext(world.sql);
    const [good = 0, bad = 0] = world.tableIds;
    for (const id of world.tableIds) await world.play([150, 250, 180], id);
    await world.issue();
    const [stored] = await world.sql<{ memory: string }[]>`select memory from reading_memories where table_id = ${bad}`;
    // experts of which none says anything
    const memory = (stored?.memory ?? "").replace(/"weights":\[[^\]]*\]/, '"weights":[0,0,0]');
    await world.sql`
      update reading_memories set memory = ${memory}, memory_hash = ${readingHash(memory)} where table_id = ${bad}`;
    for (const id of world.tableIds) await world.play([300], id);
    const counts = await issueForecasts.run({ house: world.house }, context);
    expect(counts).toMatchObject({ issued: 2, damaged: 1 });
    const left = await world.sql<{ id: number }[]>`
      select table_id as id from reading_memories where table_id = any(${world.tableIds}::integer[])`;
    expect(left).toEqual([{ id: good }]);
    expect(await openAlerts(world, "reading")).toMatchObject([{ subject: expect.stringContaining("/m1") }]);
    for (const id of world.tableIds) await world.play([300], id);
    await issueForecasts.run({ house: world.house }, context);
    const memories = await world.sql<{ memory: string }[]>`
      select memory from reading_memories where table_id = any(${world.tableIds}::integer[])`;
    expect(memories).toHaveLength(2);
    expect(memories[0]?.memory).toBe(memories[1]?.memory);
    expect(await openAlerts(world, "reading")).toEqual([]);
  });
});
