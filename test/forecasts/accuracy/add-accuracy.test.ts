import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findMark, listTablesToAdd } from "../../../src/forecasts/accuracy/mark-store.ts";
import { saveDays, savePeriods } from "../../../src/forecasts/accuracy/row-store.ts";
import { addAccuracy } from "../../../src/forecasts/accuracy/add-accuracy.ts";
import { KEY } from "../../../src/forecasts/accuracy/keys.ts";
import { featureSums, lateRoundsOf, withLateRounds } from "../../../src/forecasts/accuracy/published.ts";
import { listPublished } from "../../../src/forecasts/accuracy/published-store.ts";
import { checkAccuracy, recomputeAccuracy } from "../../../src/forecasts/accuracy/recompute-store.ts";
import { addSums, decodeSums, encodeSums, type SumVector } from "../../../src/forecasts/accuracy/sum-vector.ts";
import { verdictOf } from "../../../src/forecasts/accuracy/figures/verdict.ts";
import { showAccuracy } from "../../../src/forecasts/accuracy/present.ts";
import { readVersions } from "../../../src/published/store.ts";
import { connect, type Sql, type Transaction } from "../../../src/db/client.ts";
import { createCoreDatabase } from "../../support/core-schema.ts";
import { createTables, storeEvents } from "./core-facts.ts";
import { anyHistory, type Event, makeHistory, makeLateHistory } from "./histories.ts";

let database: Awaited<ReturnType<typeof createCoreDatabase>>;
let sql: Sql;
let houses = 0;
const { signal } = new AbortController();
const thisHour = () => Math.floor(Date.now() / 3_600_000);

beforeAll(async () => {
  database = await createCoreDatabase();
  sql = connect(database.url, { name: "test", max: 6 });
});
afterAll(async () => {
  await sql.end();
  await database.drop();
});

const newTables = (colors: readonly number[]) => createTables(sql, `house-${(houses += 1)}`, colors);

describe("adding the accuracy of tables", () => {
  it("gives the result of recomputing from rows, whatever was added when and by how many concurrently", async () => {
    const step = fc.record({
      events: fc.integer({ min: 0, max: 60 }),
      rows: fc.integer({ min: 1, max: 40 }),
      adders: fc.integer({ min: 0, max: 3 }),
      ago: fc.oneof(
        { weight: 3, arbitrary: fc.constant(0) },
        { weight: 2, arbitrary: fc.integer({ min: 1, max: 3000 }) },
      ),
    });
    await fc.assert(
      fc.asyncProperty(anyHistory(120, thisHour() - 100), fc.array(step, { maxLength: 5 }), async (options, steps) => {
        const [tableId = 0] = await newTables([options.colors]);
        const events = makeHistory(options);
        let stored = 0;
        const last = { events: events.length, rows: 9, adders: 2, ago: 0 };
        for (const { events: count, rows, adders, ago } of [...steps, last]) {
          await storeEvents(sql, tableId, events.slice(stored, (stored += count)));
          if (ago > 0) await rewindHour(tableId, ago);
          const limits = { rows, tables: 2 };
          await Promise.all(Array.from({ length: adders }, () => addAccuracy(sql, [tableId], signal, limits)));
          expect(await checkAccuracy(sql, tableId)).toBeNull();
        }
        expect(await countWaiting(tableId)).toBe(0);
      }),
      { numRuns: 12 },
    );
  });

  it("shows in each period what the hours in it sum up to", async () => {
    const [tableId = 0] = await newTables([3]);
    await storeEvents(sql, tableId, eventsUntilNow(3000, 2));
    const before = await currentHour();
    await addAccuracy(sql, [tableId], signal);
    const { hour } = (await findMark(sql, tableId))!;
    expect([before, await currentHour()]).toContain(hour);
    const hours = await sql<{ hour: number; feature: number; model: string; sums: Uint8Array }[]>`
      select (extract(epoch from hour) / 3600)::integer as hour, feature, model, sums
      from accuracy_hours
      where table_id = ${tableId}`;
    const { rows: published } = await listPublished(sql, { tableIds: [tableId] });
    expect(published.length).toBeGreaterThan(100);
    for (const { model, feature, period, start, end, sums, references } of published) {
      const vectorOf = (name: string) => {
        const within = hours.filter(
          (row) =>
            row.model === model &&
            NAMES[row.feature] === name &&
            row.hour >= Date.parse(start) / 3_600_000 &&
            row.hour < Date.parse(end) / 3_600_000,
        );
        const whole: SumVector = new Map();
        for (const row of within) addSums(whole, decodeSums(row.sums));
        return whole;
      };
      const own = featureSums(NAMES.indexOf(feature), vectorOf(feature));
      const expected = feature === "next_color" ? own : withLateRounds(own, lateRoundsOf(vectorOf("next_color")));
      expect({ sums, references }, `${feature} ${period}`).toMatchObject(expected);
    }
    const spans = new Map(published.map(({ period, start, end }) => [period, [start, end]]));
    const text = (at: number) => new Date(at * 3_600_000).toISOString().replace(".000Z", ".0000000Z");
    const today = hour - (hour % 24);
    expect(spans.get("24h")).toEqual([text(hour - 23), text(hour + 1)]);
    expect(spans.get("7d")).toEqual([text(today - 144), text(today + 24)]);
    expect(spans.get("all")?.[1]).toEqual(text(today + 24));
    const first = await sql<{ at: string }[]>`
      select utc_text(date_trunc('hour', min(issued_at), 'UTC')) as at
      from forecast_sets
      where table_id = ${tableId}
        and model = 'k7@1'`;
    expect(spans.size).toBe(5);
    expect(published.find(({ model, period }) => model === "k7@1" && period === "all")?.start).toBe(first[0]?.at);
  });

  it("withholds the windows of a table of which more than 5 % of the rounds are late, also if no other feature is read", async () => {
    const [withheld = 0, shown = 0] = await newTables([3, 3]);
    const hour = thisHour();
    await storeEvents(sql, withheld, makeLateHistory({ onTime: 300, late: 100, hour }));
    await storeEvents(sql, shown, makeLateHistory({ onTime: 300, late: 10, hour }));
    await addAccuracy(sql, [withheld, shown], signal);
    const of = { house: "a", game: null, market: null };
    const figuresOf = async (tableId: number, feature?: string) => {
      const filter = { tableIds: [tableId], periods: ["24h", "all"] as const };
      const { rows } = await listPublished(sql, feature === undefined ? filter : { ...filter, feature });
      return rows.map((row) => {
        const figures = showAccuracy(of, row);
        const {
          withheld: reason,
          skill,
          skill_interval_95,
          interval_95,
          z,
          e_value,
          late_rounds,
          references,
        } = figures;
        const skills = references.map((one) => one.skill);
        return {
          feature: `${row.feature} ${row.period}`,
          verdict: verdictOf(row.sums, { period: row.period, shown: 1 }),
          reason,
          late_rounds,
          isNull: [skill, skill_interval_95, interval_95, z, e_value, ...skills].map((one) => one === null),
        };
      });
    };
    const reason = "more than 5 % of the rounds are void or late";
    const isNull = Array.from({ length: 8 }, () => true);
    const all = await figuresOf(withheld);
    expect(all).toEqual([
      { feature: "next_color 24h", verdict: "too many voids", reason, late_rounds: 100, isNull },
      { feature: "next_color all", verdict: "too many voids", reason, late_rounds: 100, isNull },
      { feature: "window:blue:50 24h", verdict: "too many voids", reason, late_rounds: null, isNull },
      { feature: "window:blue:50 all", verdict: "too many voids", reason, late_rounds: null, isNull },
    ]);
    expect(await figuresOf(withheld, "window:blue:50")).toEqual(all.slice(2));
    const others = await figuresOf(shown);
    expect(others.map((one) => one.reason)).toEqual([null, null, null, null]);
    expect(others.map((one) => one.isNull.includes(true))).toEqual([false, false, false, false]);
  });

  it("makes the sums of periods that are equal once, since an API holds them for each table", async () => {
    const [young = 0, old = 0] = await newTables([3, 3]);
    await storeEvents(sql, young, eventsUntilNow(60, 100));
    await storeEvents(sql, old, eventsUntilNow(3000, 2));
    await addAccuracy(sql, [young, old], signal);
    for (const [tableId, most] of [[young, 1] as const, [old, 5] as const]) {
      const { rows: published } = await listPublished(sql, { tableIds: [tableId] });
      const series = Map.groupBy(published, ({ model, feature }) => `${model} ${feature}`);
      const distinct = [...series.values()].map((own) => new Set(own.map(({ sums }) => sums)).size);
      expect(Math.max(...distinct)).toBe(most);
    }
  });

  it("of a model that was replaced has the periods with its forecasts only, whose sums are no objects in memory", async () => {
    const [tableId = 0] = await newTables([3]);
    const isOld = (hour: number) => hour < thisHour() - 250 * 24;
    const events = eventsUntilNow(3000, 2);
    for (const event of events) {
      if (event.kind === "round" && event.set !== null) event.set.model = isOld(event.set.hour) ? "k7@9" : "k7@1";
    }
    await storeEvents(sql, tableId, events);
    await addAccuracy(sql, [tableId], signal);
    const { rows: published } = await listPublished(sql, { tableIds: [tableId] });
    const periodsOf = (of: string) => [
      ...new Set(published.flatMap(({ model, period }) => (model === of ? [period] : []))),
    ];
    expect(periodsOf("k7@9")).toEqual(["all"]);
    expect(periodsOf("k7@1")).toEqual(["24h", "7d", "30d", "90d", "all"]);
    const [old] = published;
    const [count] = await sql<{ sets: bigint }[]>`
      select count(*) as sets from forecast_sets where table_id = ${tableId} and model = 'k7@9' and 0 = any (features)`;
    expect([old?.model, old?.feature, old?.sums.forecasts]).toEqual(["k7@9", "next_color", count?.sets]);
    expect(old?.sums).not.toBe(old?.sums);
    expect(old?.version).toBeLessThanOrEqual((await findMark(sql, tableId))!.version);
  });

  it("adds the other tables when a set of one is damaged, and names that one", async () => {
    const [good = 0, bad = 0] = await newTables([3, 3]);
    for (const tableId of [good, bad]) await storeEvents(sql, tableId, eventsUntilNow(60, 100));
    await sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`update forecast_sets set p_ppm = array_fill(0, array[cardinality(p_ppm)]) where table_id = ${bad}`;
    });
    const { damaged } = await addAccuracy(sql, [good, bad], signal);
    expect(damaged).toEqual([
      { tableId: bad, reason: expect.stringMatching(/^expected a probability from 1 to 1000000 ppm, got 0/) },
    ]);
    expect(await countWaiting(good)).toBe(0);
    expect(await checkAccuracy(sql, good)).toBeNull();
    expect(await countWaiting(bad)).toBe(1);
  });

  it("adds nothing of a set with a feature that its table cannot have", async () => {
    const [tableId = 0] = await newTables([3]);
    await storeEvents(sql, tableId, eventsUntilNow(60, 100));
    const write = (from: number, to: number) =>
      sql.begin(async (tx) => {
        await tx`set local session_replication_role = replica`;
        await tx`
          update forecast_sets
          set features = array_replace(features, ${from}::smallint, ${to}::smallint)
          where table_id = ${tableId}`;
      });
    await write(7, 99);
    const { damaged } = await addAccuracy(sql, [tableId], signal);
    expect(damaged).toEqual([{ tableId, reason: expect.stringMatching(/^expected features from 0 to 9 .*found 99/) }]);
    await write(99, 7);
    await addAccuracy(sql, [tableId], signal);
    expect(await checkAccuracy(sql, tableId)).toBeNull();
  });

  it("counts each round once, also after the head claimed rounds that are not stored", async () => {
    const [tableId = 0] = await newTables([3]);
    const events = eventsUntilNow(60, 100);
    await storeEvents(sql, tableId, events.slice(0, 40));
    const damage = (by: number) =>
      sql.begin(async (tx) => {
        await tx`set local session_replication_role = replica`;
        await tx`update table_heads set last_seq = last_seq + ${by}::integer where table_id = ${tableId}`;
      });
    await damage(7);
    await addAccuracy(sql, [tableId], signal);
    await damage(-7);
    await storeEvents(sql, tableId, events.slice(40));
    await addAccuracy(sql, [tableId], signal);
    expect(await checkAccuracy(sql, tableId)).toBeNull();
  });

  it("lists a table with rows to add, at most every ten seconds, and one whose hour is over", async () => {
    const house = `house-${(houses += 1)}`;
    const [tableId = 0, silent = 0] = await createTables(sql, house, [2, 2]);
    const events = eventsUntilNow(30, 100);
    const list = async (on: Sql | Transaction = sql) => (await listTablesToAdd(on, house)).map(({ id }) => id);
    // in one transaction, whose now() stands still
    const listAfter = (age: string) =>
      sql.begin(async (tx) => {
        await tx`
          update accuracy_marks
          set hour = date_trunc('hour', now(), 'UTC'), updated_at = now() - ${age}::interval
          where table_id = ${tableId}`;
        return list(tx);
      });
    expect(await list()).toEqual([]);
    await storeEvents(sql, tableId, events.slice(0, -5));
    expect(await list()).toEqual([tableId]);
    await addAccuracy(sql, [tableId, silent], signal);
    expect(await listAfter("1 hour")).toEqual([]);
    await storeEvents(sql, tableId, events.slice(-5));
    expect(await listAfter("9.999 seconds")).toEqual([]);
    expect(await listAfter("10 seconds")).toEqual([tableId]);
    expect(await listAfter("-2 hours")).toEqual([tableId]);
    await addAccuracy(sql, [tableId], signal);
    expect(await listAfter("1 hour")).toEqual([]);
    await rewindHour(tableId, 1);
    expect(await list()).toEqual([tableId]);
  });

  it("leaves a table alone whose last forecast left all periods, though its periods end with the current hour", async () => {
    const house = `house-${(houses += 1)}`;
    const [resting = 0, silent = 0] = await createTables(sql, house, [3, 3]);
    const until = (days: number) => eventsUntil(thisHour() - days * 24, 200, 100);
    await storeEvents(sql, resting, until(95));
    await storeEvents(sql, silent, until(80));
    await addAccuracy(sql, [resting, silent], signal);
    for (const tableId of [resting, silent]) await rewindHour(tableId, 30);
    expect((await listTablesToAdd(sql, house)).map(({ id }) => id)).toEqual([silent]);
    const { version, hour } = (await findMark(sql, resting))!;
    const read = async () => (await readVersions(sql, [resting])).accuracy.get(resting)! - Number(version);
    const published = async () => {
      const { rows } = await listPublished(sql, {
        tableIds: [resting],
        periods: ["24h", "all"],
        feature: "next_color",
      });
      return [rows.at(-2)!, rows.at(-1)!] as const;
    };
    const endOf = (last: number) => new Date((last + 1) * 3_600_000).toISOString().replace("Z", "0000Z");
    expect(await read()).toBeCloseTo(30 / 2 ** 20, 12);
    const [day, all] = await published();
    expect(day).toMatchObject({
      period: "24h",
      end: endOf(hour + 30),
    });
    expect([day.sums.forecasts, day.sums.receivedRounds]).toEqual([0n, 0n]);
    expect(all.sums.forecasts).toBeGreaterThan(0n);
    expect(await checkAccuracy(sql, resting)).toBeNull();

    await storeEvents(sql, resting, roundNow(201n));
    await sql`update accuracy_marks set updated_at = updated_at - interval '10 seconds' where table_id = ${resting}`;
    expect((await listTablesToAdd(sql, house)).map(({ id }) => id)).toContain(resting);
    // until its new rows are added, nothing is known of the hours since
    expect(await read()).toBe(0);
    expect(await published()).toMatchObject([{ period: "24h", end: endOf(hour) }, { period: "all" }]);
    await addAccuracy(sql, [resting], signal);
    expect((await findMark(sql, resting))?.hour).toBeGreaterThanOrEqual(hour + 30);
    expect(await checkAccuracy(sql, resting)).toBeNull();
    expect(await read()).toBe(1);
  });

  it("names the row that was changed", async () => {
    const [tableId = 0] = await newTables([3]);
    await storeEvents(sql, tableId, eventsUntilNow(300, 2));
    await addAccuracy(sql, [tableId], signal);
    for (const [kind, table] of [
      ["hour", "accuracy_hours"],
      ["day", "accuracy_days"],
      ["period", "accuracy_periods"],
    ] as const) {
      const [row] = await sql<{ sums: Uint8Array; at: string }[]>`
        select sums, ctid::text as at
        from ${sql(table)}
        where table_id = ${tableId}
          and length(sums) > 20
        limit 1`;
      const sums = decodeSums(row!.sums);
      sums.set(KEY.hits, (sums.get(KEY.hits) ?? 0n) + 1n);
      await sql`update ${sql(table)} set sums = ${encodeSums(sums)} where ctid = ${row!.at}::tid`;
      expect(await checkAccuracy(sql, tableId)).toMatchObject({
        kind,
        expected: `${KEY.hits}: ${sums.get(KEY.hits)! - 1n}`,
      });
      await sql`update ${sql(table)} set sums = ${row!.sums} where table_id = ${tableId} and sums = ${encodeSums(sums)}`;
      expect(await checkAccuracy(sql, tableId)).toBeNull();
    }
  });
});

/** The UTC hour by the database clock, counted from 1970. */
async function currentHour(): Promise<number> {
  const [row] = await sql<{ hour: number }[]>`select floor(extract(epoch from now()) / 3600)::integer as hour`;
  return row!.hour;
}

/** Feature names of a table of three colors by code. */
const NAMES = [
  "next_color",
  ...["blue", "purple", "pink"].flatMap((color) => [50, 80, 90].map((target) => `window:${color}:${target}`)),
];

/** A late round that was received now. */
function roundNow(seq: bigint): Event[] {
  return [{ kind: "round", round: { seq, ordinal: null, hour: thisHour() }, set: null, scores: null }];
}

/** A history of three colors that ends about now. */
const eventsUntilNow = (rounds: number, roundsPerHour: number) => eventsUntil(thisHour(), rounds, roundsPerHour);

/** A history of three colors that ends in an hour. */
function eventsUntil(hour: number, rounds: number, roundsPerHour: number) {
  const options = { rounds, roundsPerHour, colors: 3, seed: 7 };
  const hourOf = (event: Event | undefined) => (event?.kind === "round" ? event.round.hour : 0);
  const last = makeHistory({ ...options, firstHour: 0 }).findLast(({ kind }) => kind === "round");
  return makeHistory({ ...options, firstHour: hour - hourOf(last) });
}

/** Rounds, sets and scores that are not added yet: 1 when there are any. */
async function countWaiting(tableId: number): Promise<number> {
  const [row] = await sql<{ waiting: number }[]>`
    select count(*)::integer as waiting
    from table_heads h
    left join accuracy_marks m using (table_id)
    where table_id = ${tableId}
      and h.set_seq is not null
      and (
        m.table_id is null
        or m.set_seq <> h.set_seq
        or m.round_seq <> h.last_seq
        or m.settled_seq < (select coalesce(max(settled_seq), 0) from score_sets s where s.table_id = h.table_id)
        or m.revision < (select coalesce(max(revision), 0) from score_revisions r where r.table_id = h.table_id)
      )`;
  return row?.waiting ?? 0;
}

/** Makes the rows of a table as they were when its hour was moved last so many hours ago. */
async function rewindHour(tableId: number, hours: number): Promise<void> {
  const mark = await findMark(sql, tableId);
  if (mark === null) return;
  const hour = mark.hour - hours;
  const rows = await recomputeAccuracy(sql, { ...mark, hour });
  await sql.begin(async (tx) => {
    for (const table of ["accuracy_days", "accuracy_periods"]) {
      await tx`delete from ${tx(table)} where table_id = ${tableId}`;
    }
    await saveDays(
      tx,
      [...rows.days.values()].map((row) => ({ ...row, tableId })),
    );
    await savePeriods(
      tx,
      [...rows.periods.values()].map((row) => ({ ...row, tableId })),
    );
    await tx`update accuracy_marks set hour = to_timestamp(${hour} * 3600::bigint) where table_id = ${tableId}`;
  });
}
