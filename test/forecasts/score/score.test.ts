import { describe, expect, test } from "vitest";
import { listHousesToScore } from "../../../src/forecasts/score/tables-to-score-store.ts";
import { scoreNextColor } from "../../../src/forecasts/score/scoring.ts";
import { sumsFromJson, sumsToJson } from "../../../src/forecasts/accuracy/sums-json.ts";
import { emptySums, type Sums } from "../../../src/forecasts/accuracy/sums.ts";
import { PERIODS } from "../../../src/forecasts/accuracy/accuracy-store.ts";
import { generatedRounds } from "../streams.ts";
import { createWorld, saveConflict, type World } from "../world.ts";

interface ScoreRow {
  forecast_seq: number;
  rev: number;
  status: string;
  outcome: number | null;
}

/** Scores of the next color; the forecasts are counted without the windows between them. */
function scoresOf({ sql, tableId }: World): Promise<ScoreRow[]> {
  return sql<ScoreRow[]>`
    select dense_rank() over (order by forecast_seq)::integer as forecast_seq, rev, status, outcome
    from scores
    where table_id = ${tableId}
      and feature = 'next_color'
    order by forecast_seq, rev`;
}

interface HourRow {
  hour: string;
  rev: number;
  final: boolean;
  sums: unknown;
}

function hoursOf({ sql }: World, tableId: number): Promise<HourRow[]> {
  return sql<HourRow[]>`
    select utc_text(hour) as hour, rev, final, sums
    from accuracy_hours
    where table_id = ${tableId}
      and feature = 'next_color'
    order by hour, rev`;
}

async function totalOf(world: World): Promise<Record<string, number>> {
  const [row] = await world.sql<{ sums: unknown }[]>`
    select sums
    from published_accuracy
    where table_id = ${world.tableId}
      and feature = 'next_color'
      and period = 'all'`;
  return countsOf(sumsFromJson(row?.sums));
}

function countsOf(sums: Sums): Record<string, number> {
  const { forecasts, n, hits, voidGap, voidQuarantine, voidLate, pending, onTimeRounds, notIssued } = sums;
  const counts = { forecasts, n, hits, voidGap, voidQuarantine, voidLate, pending, onTimeRounds, notIssued };
  return Object.fromEntries(Object.entries(counts).map(([name, value]) => [name, Number(value)]));
}

async function openOf({ sql, tableId }: World): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::integer as n
    from open_forecasts
    where table_id = ${tableId}
      and feature = 'next_color'`;
  return row?.n ?? -1;
}

async function isToScore(world: World): Promise<boolean> {
  const houses = await listHousesToScore(world.sql);
  return houses.some(({ house }) => house === world.house);
}

/** A table with one forecast that waits for its round. */
async function withOpenForecast(): Promise<World> {
  const world = await createWorld();
  await world.play([150]);
  await world.play([150]);
  await world.issue();
  expect(await openOf(world)).toBe(1);
  return world;
}

describe("judging", () => {
  test("gives every figure that the scoring rules give, by an independent reading of the rows", async () => {
    const world = await createWorld();
    for (const { hundredths } of generatedRounds(60)) await world.turn(hundredths);
    const rows = await world.sql<
      {
        p_ppm: number[];
        base_ppm: number[];
        color: string;
        score: Record<string, number | boolean | string>;
      }[]
    >`
      select f.p_ppm, f.base_ppm, r.color, to_jsonb(s) as score
      from forecasts f
      join scores s on s.table_id = f.table_id and s.forecast_seq = f.seq
      join rounds r on r.table_id = f.table_id and r.seq = f.cutoff_seq + 1
      where f.table_id = ${world.tableId}
        and f.feature = 'next_color'`;
    expect(rows).toHaveLength(58);
    for (const { p_ppm, base_ppm, color, score } of rows) {
      const outcome = ["blue", "purple", "pink"].indexOf(color);
      const expected = scoreNextColor(p_ppm, base_ppm, outcome);
      expect(score).toMatchObject({
        status: "scored",
        outcome,
        hit: expected.hit,
        p: expected.pPpm,
        base_p: expected.basePpm,
        brier: expected.brier,
        brier_base: expected.brierBase,
        rps: expected.rps,
        rps_base: expected.rpsBase,
        ll: expected.ll,
        ll_base: expected.llBase,
      });
    }
  });

  test("waits as long as no on-time round follows", async () => {
    const world = await withOpenForecast();
    await world.play([{ hundredths: 150, roundId: "4", late: true, source: "history" }]);
    expect(await world.score()).toMatchObject({ scored: 0, voided: 0 });
    expect(await openOf(world)).toBe(1);
    await world.publish(); // what waits is counted
    expect(await isToScore(world)).toBe(false);
  });

  test.each([
    ["void_gap where rounds are missing before the next one", { hundredths: 150, roundId: "1009" }],
    ["void_late where its round was asked for before the issue", { hundredths: 150, requestedAgo: 60, absentAgo: 61 }],
    ["scored where its round was asked for after the issue", { hundredths: 150 }],
  ])("%s", async (claim, round) => {
    const world = await withOpenForecast();
    await world.play([round]);
    await world.score();
    expect(await scoresOf(world)).toMatchObject([{ rev: 1, status: claim.split(" ")[0] }]);
    expect(await openOf(world)).toBe(0);
  });

  test("void_gap where ids tell nothing and rounds are missing", async () => {
    const world = await createWorld({ tables: [{ round_ids: "opaque" }] });
    await world.play([{ hundredths: 150, roundId: "a", afterGap: false }]);
    await world.play([{ hundredths: 150, roundId: "b", afterGap: false }]);
    await world.issue();
    await world.play([{ hundredths: 150, roundId: "c", afterGap: true }]);
    await world.score();
    expect(await scoresOf(world)).toMatchObject([{ status: "void_gap" }]);
  });

  test("void_quarantine where its round came with two results before it was scored", async () => {
    const world = await withOpenForecast();
    await world.play([150]);
    await saveConflict(world.sql, world.tableId, "1003");
    expect(await world.score()).toMatchObject({ scored: 0, voided: 1 });
    expect(await scoresOf(world)).toMatchObject([{ rev: 1, status: "void_quarantine", outcome: null }]);
  });

  test("twice is once, also at the same time", async () => {
    const world = await createWorld({ connections: 8 });
    for (const { hundredths } of generatedRounds(5)) await world.turn(hundredths);
    await world.play([150]);
    await Promise.all([world.score(), world.score(), world.score()]);
    const [scores, hours] = [await scoresOf(world), await hoursOf(world, world.tableId)];
    expect(scores.map(({ rev }) => rev)).toEqual([1, 1, 1, 1]);
    expect(await world.score()).toEqual({ scored: 0, voided: 0, windows: 0, hours: 0, damaged: [] });
    expect([await scoresOf(world), await hoursOf(world, world.tableId)]).toEqual([scores, hours]);
  });

  test("leaves no forecast behind that a round resolves while it runs", async () => {
    const world = await createWorld({ connections: 8 });
    await world.play([150]);
    let playing = true;
    const score = async () => {
      while (playing) await world.score();
    };
    const play = async () => {
      for (const { hundredths } of generatedRounds(60)) {
        await world.play([hundredths]);
        await world.issue();
      }
      playing = false;
    };
    await Promise.all([play(), score(), score()]);
    // whatever is left is found by the sweep
    while (await isToScore(world)) {
      await world.score();
      await world.publish();
    }
    const [last] = await world.sql`
      select count(*)::integer as forecasts, count(s.forecast_seq)::integer as scores
      from forecasts f
      left join scores s on s.table_id = f.table_id and s.forecast_seq = f.seq
      where f.table_id = ${world.tableId}
        and f.feature = 'next_color'`;
    expect(last).toEqual({ forecasts: 60, scores: 59 });
  });

  test("goes through more forecasts than one transaction takes, of more tables than one transaction locks", async () => {
    const world = await createWorld({ tables: Array.from({ length: 120 }, () => ({})) });
    for (let n = 0; n < 3; n++) {
      for (const id of world.tableIds) await world.play([150], id);
      await world.issue();
    }
    expect(await world.score()).toMatchObject({ scored: 120, voided: 0 });
    const [marks] = await world.sql`
      select count(*)::integer as n
      from accuracy_marks
      where table_id = any(${world.tableIds}::integer[])
        and seq = 3`;
    expect(marks).toEqual({ n: 120 });
  });
});

describe("a round that turns out to have two results", () => {
  test("voids the score it had, for good, and the sums follow", async () => {
    const world = await createWorld();
    for (const hundredths of [150, 150, 150, 1200, 150]) await world.turn(hundredths);
    await world.publish();
    expect(await totalOf(world)).toMatchObject({ forecasts: 3, n: 3, voidQuarantine: 0, pending: 0 });
    await saveConflict(world.sql, world.tableId, "1004");
    expect(await isToScore(world)).toBe(true);
    expect(await world.score()).toMatchObject({ scored: 0, voided: 1 });
    expect(await scoresOf(world)).toMatchObject([
      { forecast_seq: 1, rev: 1, status: "scored" },
      { forecast_seq: 2, rev: 1, status: "scored" },
      { forecast_seq: 2, rev: 2, status: "void_quarantine", outcome: null },
      { forecast_seq: 3, rev: 1, status: "scored" },
    ]);
    await passTime(world, 13); // in the first hour of a day its longer periods wait 12 s
    await world.publish();
    expect(await totalOf(world)).toMatchObject({ forecasts: 4, n: 2, voidQuarantine: 1, pending: 1 });
    expect(await world.score()).toEqual({ scored: 0, voided: 0, windows: 0, hours: 0, damaged: [] });
    expect(await scoresOf(world)).toHaveLength(4);
  });

  test("voids nothing that was void before, and nothing else than the forecast of that round", async () => {
    const world = await withOpenForecast();
    await world.play([{ hundredths: 150, roundId: "1009" }]);
    await world.score();
    await saveConflict(world.sql, world.tableId, "1009");
    await saveConflict(world.sql, world.tableId, "1001");
    expect(await world.score()).toMatchObject({ voided: 0 });
    expect(await scoresOf(world)).toMatchObject([{ rev: 1, status: "void_gap" }]);
    expect(await isToScore(world)).toBe(true);
    await world.publish();
    expect(await isToScore(world)).toBe(false);
  });
});

describe("hour rows", () => {
  test("are the same from scratch, whatever was scored in which run", async () => {
    const world = await createWorld({ tables: [{}, {}, {}] });
    const [atOnce = 0, stepwise = 0, odd = 0] = world.tableIds;
    const rounds = generatedRounds(40);
    for (const [index, { hundredths, afterGap }] of rounds.entries()) {
      for (const id of world.tableIds) {
        const gap = afterGap || index % 13 === 5 ? 7 : 1;
        const roundId = String(10_000 + index * 10 + gap);
        await world.play([{ hundredths, roundId, afterGap: gap === 7 }], id);
      }
      await world.issue();
      if (index % 3 === 1) await scoreOnly(world, [stepwise]);
      if (index % 5 === 4) await scoreOnly(world, [odd, stepwise]);
    }
    await world.score();
    const rows = await Promise.all([atOnce, stepwise, odd].map((id) => hoursOf(world, id)));
    const shape = rows.map((hours) =>
      hours.map(({ sums }) => {
        const { first, last, ...rest } = sumsFromJson(sums); // hashes differ: each table has its own name in them
        return { ...rest, first: first?.seq, last: last?.seq };
      }),
    );
    expect(shape[1]).toEqual(shape[0]);
    expect(shape[2]).toEqual(shape[0]);
    const before = await hoursOf(world, stepwise);
    await world.sql`delete from accuracy_hours where table_id = ${stepwise}`;
    await world.sql`delete from accuracy_marks where table_id = ${stepwise}`;
    await world.score();
    expect(await hoursOf(world, stepwise)).toEqual(before);
  });

  test("count a round without a forecast in the hour it was received, by a count made by hand", async () => {
    const world = await createWorld();
    // two hours ago: 1 without (the first answer), then the first forecast, resolved; then three in one answer
    await world.play([150]);
    await world.turn(150); // forecast 1, after seq 2
    await world.turn(150); // seq 3: counted, issued. forecast 2
    await world.play([150, 150, 150]); // seq 4 issued; 5 and 6 came second and later: 2 not issued
    await world.score();
    await world.issue(); // forecast 3, after seq 6
    await world.moveBack(2);
    // one hour ago: the first round of that hour follows a forecast of the hour before
    await world.turn(150); // seq 7: issued. forecast 4
    await world.play([{ hundredths: 150, roundId: "3", late: true, source: "computed" }]); // late: not counted
    await world.turn(150); // seq 9: issued. forecast 5
    await world.moveBack(1);
    // now: a round after the pause of the one before
    await world.play([{ hundredths: 150, absentAgo: null }]); // seq 10: issued
    await world.issue(); // nothing
    await world.turn(150); // seq 11: not issued. forecast 6
    await world.score();
    const rows = await hoursOf(world, world.tableId);
    const counts = rows.map(({ sums }) => countsOf(sumsFromJson(sums)));
    expect(counts).toMatchObject([
      { forecasts: 3, n: 3, pending: 0, onTimeRounds: 4, notIssued: 2 },
      { forecasts: 2, n: 2, pending: 0, onTimeRounds: 2, notIssued: 0 },
      { forecasts: 0, n: 0, pending: 0, onTimeRounds: 2, notIssued: 1 },
    ]);
  });

  test("are final when their hour is over and nothing is pending, and are then never overwritten", async () => {
    const world = await createWorld();
    for (const hundredths of [150, 150, 1200, 150]) await world.turn(hundredths);
    await world.score();
    await world.moveBack(3);
    await world.turn(150);
    const [past] = await hoursOf(world, world.tableId);
    expect(past).toMatchObject({ rev: 1, final: true });
    await saveConflict(world.sql, world.tableId, "1003");
    await world.score();
    const rows = (await hoursOf(world, world.tableId)).filter(({ hour }) => hour === past?.hour);
    expect(rows.map(({ rev, final }) => ({ rev, final }))).toEqual([
      { rev: 1, final: true },
      { rev: 2, final: true },
    ]);
    expect(rows[0]).toEqual(past);
    expect(countsOf(sumsFromJson(rows[1]?.sums))).toMatchObject({ n: 2, voidQuarantine: 1 });
  });

  test("stay open while a forecast of theirs waits, and are not made anew for that alone", async () => {
    const world = await createWorld();
    for (const hundredths of [150, 150, 150]) await world.turn(hundredths);
    await world.score();
    await world.moveBack(3);
    await world.play([{ hundredths: 150, roundId: "2", late: true, source: "computed" }]);
    expect(await world.score()).toMatchObject({ scored: 0, hours: await openSeriesOf(world) });
    expect(await hoursOf(world, world.tableId)).toMatchObject([{ rev: 1, final: false }]);
    await world.play([{ hundredths: 150, roundId: "1", late: true, source: "computed" }]);
    expect(await world.score()).toMatchObject({ hours: 0 });
    await world.turn(150);
    expect((await hoursOf(world, world.tableId))[0]).toMatchObject({ rev: 1, final: true });
  });
});

describe("published accuracy", () => {
  test("sums the hours of each period: 24 hours and 7, 30, 90 whole UTC days, including this one", async () => {
    const world = await createWorld();
    const ages = [0, 20, 23, 24, 150, 700, 2100, 3000]; // hours before this one
    for (const age of ages) await makeHour(world, age);
    await world.publish();
    const rows = await world.sql<{ period: string; start: string; end: string; now: string; n: string }[]>`
      select
        period,
        utc_text(period_start) as start,
        utc_text(period_end) as "end",
        utc_text(date_trunc('hour', now(), 'UTC')) as now,
        sums -> 'counts' ->> 'n' as n
      from published_accuracy
      where table_id = ${world.tableId}`;
    const now = Date.parse(rows[0]?.now ?? "");
    const today = Math.floor(now / 86_400_000) * 86_400_000;
    const expected = (from: number) => ages.filter((age) => now - age * 3_600_000 >= from).length;
    const days = (n: number) => today - (n - 1) * 86_400_000;
    const spans: Record<string, number> = {
      "24h": now - 23 * 3_600_000,
      "7d": days(7),
      "30d": days(30),
      "90d": days(90),
      all: now - 3000 * 3_600_000,
    };
    expect(rows.map(({ period }) => period).toSorted()).toEqual([...PERIODS].toSorted());
    for (const { period, start, end, n } of rows) {
      const from = spans[period] ?? 0;
      expect({ period, start: Date.parse(start), n: Number(n) }).toEqual({ period, start: from, n: expected(from) });
      expect(Date.parse(end)).toBe(period === "24h" ? now + 3_600_000 : today + 86_400_000);
    }
    expect(expected(spans["24h"] ?? 0)).toBe(3);
  });

  test("is summed whole where there are more tables and more hours than one transaction takes", async () => {
    const world = await createWorld({ tables: Array.from({ length: 12 }, () => ({})) });
    for (const tableId of world.tableIds) await makeHour({ ...world, tableId }, 0);
    const long = world.tableIds.slice(0, 3);
    await world.sql`
      insert into accuracy_hours (table_id, model, feature, hour, final, sums)
      select table_id, model, feature, hour - ago * interval '1 hour', true, sums
      from accuracy_hours
      cross join generate_series(1, 5999) as ago
      where table_id = any(${long}::integer[])`;
    await world.sql`
      update accuracy_series
      set first_hour = first_hour - interval '5999 hours'
      where table_id = any(${long}::integer[])`;
    expect(await world.publish()).toBe(12 * PERIODS.length);
    const rows = await world.sql<{ n: number }[]>`
      select (sums -> 'counts' ->> 'n')::integer as n
      from published_accuracy
      where table_id = any(${world.tableIds}::integer[])
        and period = 'all'
      order by table_id`;
    expect(rows.map(({ n }) => n)).toEqual([6000, 6000, 6000, ...Array.from({ length: 9 }, () => 1)]);
    expect(await isToScore(world)).toBe(false);
    expect(await world.publish()).toBe(0);
  });

  test("moves on when a period ends, although nothing new was scored", async () => {
    const world = await createWorld();
    await makeHour(world, 0);
    await makeHour(world, 30);
    await world.publish();
    expect(await isToScore(world)).toBe(false);
    await world.sql`
      update published_accuracy
      set
        period_start = period_start - interval '1 day',
        period_end = period_end - interval '1 day'
      where table_id = ${world.tableId}`;
    await world.sql`
      update accuracy_series
      set due_at = due_at - interval '1 day'
      where table_id = ${world.tableId}`;
    expect(await isToScore(world)).toBe(true);
    expect(await world.publish()).toBe(5);
    expect(await isToScore(world)).toBe(false);
    const [row] = await world.sql`
      select bool_and(period_end > now()) as ahead
      from published_accuracy
      where table_id = ${world.tableId}`;
    expect(row).toEqual({ ahead: true });
  });

  test("is made anew at most every ten seconds, and the sweep comes back for the rest", async () => {
    const world = await createWorld();
    for (const hundredths of [150, 150, 150]) await world.turn(hundredths);
    expect(await publishNextColor(world)).toBe(5);
    await world.turn(150);
    expect(await publishNextColor(world)).toBe(0);
    expect(await isToScore(world)).toBe(false);
    const [series] = await world.sql<{ wait: number }[]>`
      select extract(epoch from due_at - published_at)::float8 as wait
      from accuracy_series
      where table_id = ${world.tableId}
        and feature = 'next_color'`;
    expect(series?.wait).toBe(10);
    await passTime(world, 13); // in the first hour of a day its longer periods wait 12 s
    expect(await isToScore(world)).toBe(true);
    expect(await publishNextColor(world)).toBe(5);
    expect(await totalOf(world)).toMatchObject({ n: 2 });
    expect(await isToScore(world)).toBe(false);
  });

  test("of long periods is made anew less often, each in its time, and no change is forgotten", async () => {
    const world = await createWorld();
    await makeHour(world, 0);
    await makeHour(world, 500);
    await makeHour(world, 3000);
    expect(await world.publish()).toBe(5);
    await makeHour(world, 1); // as a late void would change an hour
    await world.sql`
      update accuracy_series
      set
        changed_at = clock_timestamp(),
        due_at = published_at + interval '10 seconds'
      where table_id = ${world.tableId}`;
    const made: number[] = [];
    // 24 hours take 12 s, 168 hours 84 s, 720 hours 360 s, 2160 hours 1080 s, some 3000 hours some 1500 s
    for (const seconds of [13, 72, 276, 720, 475]) {
      await passTime(world, seconds);
      made.push(await world.publish());
    }
    expect(made).toEqual([1, 1, 1, 1, 1]);
    const [row] = await world.sql<{ updated: boolean; waits: boolean }[]>`
      select bool_and(p.updated_at > s.changed_at) as updated, s.due_at = min(p.period_end) as waits
      from accuracy_series s
      join published_accuracy p using (table_id, model, feature)
      where table_id = ${world.tableId}
      group by s.due_at`;
    expect(row).toEqual({ updated: true, waits: true });
  });
});

/** Publishes what is due, and tells how many rows of the next color were made anew. */
async function publishNextColor(world: World): Promise<number> {
  const times = () => world.sql<{ period: string; at: string }[]>`
    select period, utc_text(updated_at) as at
    from published_accuracy
    where table_id = ${world.tableId}
      and feature = 'next_color'`;
  const before = new Map((await times()).map(({ period, at }) => [period, at]));
  await world.publish();
  return (await times()).filter(({ period, at }) => before.get(period) !== at).length;
}

/** How many features have an hour row that is not final. */
async function openSeriesOf({ sql, tableId }: World): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(distinct feature)::integer as n
    from accuracy_hours
    where table_id = ${tableId}
      and not final`;
  return row?.n ?? -1;
}

/** As if so many seconds had passed since accuracy was published. */
async function passTime({ sql, tableId }: World, seconds: number): Promise<void> {
  await sql`
    update accuracy_series
    set
      changed_at = changed_at - ${seconds} * interval '1 second',
      published_at = published_at - ${seconds} * interval '1 second',
      due_at = due_at - ${seconds} * interval '1 second'
    where table_id = ${tableId}`;
  await sql`
    update published_accuracy
    set updated_at = updated_at - ${seconds} * interval '1 second'
    where table_id = ${tableId}`;
}

/** Scores some tables only, as if the others belonged to another house. */
async function scoreOnly(world: World, tableIds: number[]): Promise<void> {
  const others = world.tableIds.filter((id) => !tableIds.includes(id));
  await world.sql`update tables set first_forecast_at = null where id = any(${others}::integer[])`;
  await world.score();
  await world.sql`
    update tables
    set first_forecast_at = clock_timestamp()
    where id = any(${others}::integer[])
      and first_forecast_after_seq is not null`;
}

/** An hour row with one scored forecast, so many hours ago. */
async function makeHour({ sql, tableId }: Pick<World, "sql" | "tableId">, hoursAgo: number): Promise<void> {
  const sums = sumsToJson({ ...emptySums(), forecasts: 1n, n: 1n });
  await sql`
    insert into accuracy_hours (table_id, model, feature, hour, final, sums)
    select ${tableId}, 'k7@1', 'next_color', at, ${hoursAgo > 0}, ${sql.json(sums)}
    from (select date_trunc('hour', now(), 'UTC') - ${hoursAgo} * interval '1 hour' as at) hour`;
  await sql`
    insert into accuracy_series as s (table_id, model, feature, first_hour, changed_at, due_at)
    select table_id, model, feature, min(hour), now(), now()
    from accuracy_hours
    where table_id = ${tableId}
    group by table_id, model, feature
    on conflict (table_id, model, feature) do update
    set first_hour = excluded.first_hour`;
}
