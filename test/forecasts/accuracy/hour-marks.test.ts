import type { JSONValue } from "postgres";
import { describe, expect, test } from "vitest";
import { sumsFromJson } from "../../../src/forecasts/accuracy/sums-json.ts";
import { verify } from "../../../src/forecasts/verify/verify.ts";
import { generatedRounds } from "../streams.ts";
import { createWorld, saveConflict, type World } from "../world.ts";

/** Enough for a mark of every feature that often ends. */
const ROUNDS = 75;

interface Row {
  feature: string;
  hour: string;
  sums: unknown;
  references: unknown;
}

/** The newest sums of each hour of a table. */
function hoursOf({ sql }: World, tableId: number): Promise<Row[]> {
  return sql<Row[]>`
    select distinct on (feature, hour) feature, utc_text(hour) as hour, sums, reference_sums as "references"
    from accuracy_hours
    where table_id = ${tableId}
    order by feature, hour, rev desc`;
}

/** The same but for the hashes, which hold the table's name. */
async function withoutHashes(world: World, tableId: number): Promise<object[]> {
  return (await hoursOf(world, tableId)).map(({ sums, ...row }) => {
    const { first, last, ...rest } = sumsFromJson(sums);
    return { ...row, ...rest, first: first?.seq, last: last?.seq };
  });
}

interface Mark {
  feature: string;
  hour: string;
  cutoff: number;
  rounds: number;
  n: number;
}

async function marksOf({ sql }: World, tableId: number): Promise<Mark[]> {
  return sql<Mark[]>`
    select
      feature,
      utc_text(hour) as hour,
      cutoff_seq::integer as cutoff,
      rounds_seq::integer as rounds,
      (sums -> 'counts' ->> 'n')::integer as n
    from hour_marks
    where table_id = ${tableId}
    order by feature, hour`;
}

const markOf = async (world: World, feature: string, tableId = world.tableId) =>
  (await marksOf(world, tableId)).findLast((mark) => mark.feature === feature);

async function failureOf({ sql }: World, tableId: number) {
  return (await verify(sql, { tableId })).first_failure;
}

type Twice = World & { often: number; once: number };

/**
 * Two tables with the same rounds and forecasts, all of one hour, the first summed after every round and the second once at
 * the end.
 */
async function playedTwice(): Promise<Twice> {
  const world = await playTwice();
  const [{ hours } = { hours: 0 }] = await world.sql<{ hours: number }[]>`
    select count(distinct date_trunc('hour', received_at))::integer as hours
    from rounds
    where table_id = any(${world.tableIds}::integer[])`;
  // the clock struck meanwhile: it does so once an hour
  return hours === 1 ? world : playTwice();
}

async function playTwice(): Promise<Twice> {
  const world = await createWorld({ tables: [{}, {}] });
  const [often = 0, once = 0] = world.tableIds;
  for (const [index, { hundredths }] of generatedRounds(ROUNDS).entries()) {
    const roundId = String(3000 + index + 4 * Math.floor(index / 30));
    for (const id of world.tableIds) {
      await world.play([{ hundredths, roundId }], id);
      if (index % 20 === 9)
        await world.play([{ hundredths: 150, roundId: String(index), late: true, source: "computed" }], id);
    }
    await world.score();
    await world.sql`delete from hour_marks where table_id = ${once}`;
    await world.issue();
  }
  await world.score();
  return { ...world, often, once };
}

describe("an hour that is made from its mark", () => {
  test("is the same as one that is made from all its facts, with gaps and late rounds", async () => {
    const world = await playedTwice();
    const marks = await marksOf(world, world.often);
    expect(marks.map(({ feature }) => feature)).toEqual(expect.arrayContaining(["next_color", "window:blue:50"]));
    expect((await hoursOf(world, world.often)).length).toBeGreaterThan(5);
    expect(await withoutHashes(world, world.often)).toEqual(await withoutHashes(world, world.once));
    for (const id of [world.often, world.once]) expect(await failureOf(world, id)).toBeNull();
  });

  test("is made from nothing before it", async () => {
    const world = await playedTwice();
    const mark = await markOf(world, "next_color", world.often);
    const counted = async () => {
      const hours = await hoursOf(world, world.often);
      const row = hours.find(({ feature, hour }) => feature === "next_color" && hour === mark?.hour);
      return sumsFromJson(row?.sums).n;
    };
    const before = await counted();
    await world.sql`
      update hour_marks
      set sums = jsonb_set(sums, '{counts,n}', to_jsonb((${(mark?.n ?? 0) + 1000})::text))
      where table_id = ${world.often}
        and feature = 'next_color'`;
    await world.turn(150, world.often);
    await world.score();
    expect(await counted()).toBe(before + 1001n);
  });
});

describe("a mark of an hour", () => {
  test("stays until 32 more forecasts have ended", async () => {
    const world = await createWorld();
    const seen = new Map<string, Mark>();
    // of one of two hours there are two marks
    for (const { hundredths } of generatedRounds(130)) {
      await world.turn(hundredths);
      const mark = await markOf(world, "next_color");
      if (mark !== undefined) seen.set(`${mark.hour} ${mark.cutoff}`, mark);
    }
    const counts = [...Map.groupBy(seen.values(), ({ hour }) => hour).values()].map((own) => own.map(({ n }) => n));
    for (const own of counts) expect(own).toEqual([32, 64, 96, 128].slice(0, own.length));
    expect(Math.max(...counts.map(({ length }) => length))).toBeGreaterThanOrEqual(2);
    for (const { cutoff, rounds } of seen.values()) expect(rounds - cutoff).toBe(1);
  });

  test("is not gone by where its hour is kept for good", async () => {
    const world = await playedTwice();
    const { sql, often } = world;
    const marks = await sql<
      { mark: JSONValue }[]
    >`select to_jsonb(m) as mark from hour_marks m where table_id = ${often}`;
    await world.moveBack(2, often);
    await sql`
      insert into hour_marks
      select
        table_id, model, feature, hour - interval '2 hours', cutoff_seq, rounds_seq,
        jsonb_set(sums, '{counts,n}', '"1000"'), reference_sums
      from jsonb_populate_recordset(null::hour_marks, ${sql.json(marks.map(({ mark }) => mark))})`;
    // ends the forecasts that wait, and touches their hour
    await world.play([150], often);
    await world.score();
    const finals = await sql<{ feature: string; n: number; scored: number }[]>`
      select
        feature,
        (sums -> 'counts' ->> 'n')::integer as n,
        (
          select count(*)::integer
          from scores s
          where s.table_id = h.table_id
            and s.feature = h.feature
            and s.status = 'scored'
        ) as scored
      from accuracy_hours h
      where table_id = ${often}
        and final`;
    expect(finals.map(({ feature }) => feature)).toContain("next_color");
    for (const { n, scored } of finals) expect(n).toBe(scored);
    // nor is another one made of it
    expect((await markOf(world, "next_color", often))?.n).toBe(1000);
  });

  test("is not left where one that waits lies before others that have ended", async () => {
    const world = await playedTwice();
    const { sql, once } = world;
    await sql`
      delete from scores
      where (table_id, forecast_seq) in (
        select table_id, seq
        from forecasts
        where table_id = ${once}
          and feature = 'next_color'
        order by seq
        offset 40
        limit 1
      )`;
    await sql`delete from hour_marks where table_id = ${once}`;
    await world.turn(150, once);
    await world.score();
    const features = (await marksOf(world, once)).map(({ feature }) => feature);
    // of what the round touched
    expect(features.length).toBeGreaterThan(0);
    expect(features).not.toContain("next_color");
  });

  test("goes with the first score of it that is revised, and the hour is made without it", async () => {
    const world = await playedTwice();
    const marks = (await marksOf(world, world.often)).filter(({ feature }) => feature === "next_color");
    await saveConflict(world.sql, world.often, "3007");
    await world.score();
    const hours = (await hoursOf(world, world.often)).filter(({ feature }) => feature === "next_color");
    const voided = hours.map(({ sums }) => sumsFromJson(sums).voidQuarantine);
    expect(voided.reduce((sum, one) => sum + one, 0n)).toBe(1n);
    expect((await marksOf(world, world.often)).filter(({ feature }) => feature === "next_color")).not.toEqual(marks);
    expect(await failureOf(world, world.often)).toBeNull();
  });

  test("that is damaged is as one that is missing, and is made again", async () => {
    const world = await playedTwice();
    const before = await marksOf(world, world.often);
    for (const spoil of ["sums = '{}'", `reference_sums = '{"due": 1}'`]) {
      await world.sql.unsafe(`update hour_marks set ${spoil} where table_id = ${world.often}`);
      expect(await failureOf(world, world.often)).toMatchObject({ kind: "hour_mark" });
      await world.turn(150, world.often);
      await world.score();
      const again = await markOf(world, "next_color", world.often);
      expect(again?.n).toBeGreaterThan(before.find(({ feature }) => feature === "next_color")?.n ?? 0);
      await world.sql`delete from hour_marks where table_id = ${world.often} and feature <> 'next_color'`;
      expect(await failureOf(world, world.often)).toBeNull();
    }
  });

  test("that says something untrue is named by verify", async () => {
    const world = await playedTwice();
    const hour = (await markOf(world, "next_color", world.often))?.hour;
    const id = `${world.tableName} k7@1 next_color ${hour}`;
    const change = (set: string) =>
      world.sql.unsafe(
        `update hour_marks set ${set} where table_id = ${world.often} and feature = 'next_color' and hour = '${hour}'`,
      );
    for (const [there, back] of [
      ["cutoff_seq = cutoff_seq - 1", "cutoff_seq = cutoff_seq + 1"],
      ["rounds_seq = rounds_seq - 1", "rounds_seq = rounds_seq + 1"],
      // a forecast that still waits
      ["cutoff_seq = cutoff_seq + 1000", "cutoff_seq = cutoff_seq - 1000"],
    ] as const) {
      await change(there);
      expect(await failureOf(world, world.often)).toMatchObject({ kind: "hour_mark", id });
      await change(back);
      expect(await failureOf(world, world.often)).toBeNull();
    }
    await change("reference_sums = jsonb_set(reference_sums, '{due,n}', '\"3\"')");
    expect(await failureOf(world, world.often)).toMatchObject({ kind: "hour_mark", id });
  });

  test("is dropped three hours later, when another one is kept", async () => {
    const world = await playedTwice();
    await world.sql`update hour_marks set hour = hour - interval '4 hours' where table_id = ${world.often}`;
    const old = (await marksOf(world, world.often)).length;
    expect(old).toBeGreaterThan(0);
    await world.turn(150, world.often);
    await world.score();
    const [{ left } = { left: -1 }] = await world.sql<{ left: number }[]>`
      select count(*)::integer as left
      from hour_marks
      where table_id = ${world.often}
        and hour < now() - interval '3 hours'`;
    expect(left).toBe(0);
    expect((await marksOf(world, world.often)).length).toBeGreaterThan(0);
  });
});
