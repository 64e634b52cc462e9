import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { issueForHouse } from "../../../src/forecasts/issue/issue.ts";
import { emptyState } from "../../../src/forecasts/model/k7.ts";
import { decodeState, encodeState, modelOfState, stateHash } from "../../../src/forecasts/model/state.ts";
import type { PublishedForecast } from "../../../src/forecasts/issue/published-forecast.ts";
import { learnRounds, modelOf } from "../../../src/forecasts/model/table-model.ts";
import { listHousesToIssue } from "../../../src/forecasts/issue/tables-to-issue-store.ts";
import { applyHouses } from "../../../src/houses/apply-store.ts";
import { pauseHouse, resumeHouse } from "../../../src/houses/pause-store.ts";
import { houseEntry, tableEntry } from "../../support/houses.ts";
import { generatedRounds, readFixture } from "../streams.ts";
import { createWorld, PAUSE_MS, readAll, saveUnread, type World } from "../world.ts";

const BANDS = [
  { name: "blue", below: 200 },
  { name: "purple", below: 1000 },
  { name: "pink", below: null },
];

interface Row {
  seq: bigint;
  feature: string;
  horizon: number;
  forecast_id: string;
  cutoff_seq: bigint;
  cutoff_round_id: string;
  target_round_id: string | null;
  p_ppm: number[];
  base_ppm: number[];
  prev_hash: string;
  hash: string;
  issued_at: string;
  history_hash: string;
}

/** The forecasts of the next color, or with `windows` all. */
function forecastsOf(world: World, tableId = world.tableId, { windows = false } = {}): Promise<Row[]> {
  return world.sql<Row[]>`
    select
      seq, feature, horizon, forecast_id, cutoff_seq, cutoff_round_id, target_round_id, p_ppm, base_ppm, prev_hash, hash, history_hash,
      utc_text(issued_at) as issued_at
    from forecasts
    where table_id = ${tableId}
      and (feature = 'next_color' or ${windows})
    order by seq`;
}

async function shownOf(world: World, tableId = world.tableId) {
  const [row] = await world.sql<{ forecast: Pick<PublishedForecast, "cutoff_seq" | "next_color"> | null }[]>`
    select forecast - 'windows' as forecast
    from published_now
    where table_id = ${tableId}`;
  return row?.forecast ?? null;
}

async function isToIssue(world: World): Promise<boolean> {
  const houses = await listHousesToIssue(world.sql);
  return houses.some(({ house }) => house === world.house);
}

async function stateOf(world: World, tableId = world.tableId) {
  const [row] = await world.sql<{ learned_seq: bigint; state: Buffer; state_hash: string }[]>`
    select learned_seq, state, state_hash
    from model_states
    where table_id = ${tableId}`;
  return row;
}

describe("issuing forecasts", () => {
  test("gives the golden forecasts on true rounds that are polled one by one, each before its round", async () => {
    const world = await createWorld();
    const golden = readFixture("k7_golden.csv").slice(0, 101);
    for (const { multiplier } of golden.slice(0, 100)) {
      await world.play([Math.round(Number(multiplier) * 100)]);
      await world.issue();
    }
    // the first answer says nothing of when its rounds were not there yet: no forecast after it
    expect(await forecastsOf(world)).toMatchObject(
      golden.slice(2).map((row, index) => ({
        cutoff_seq: BigInt(index + 2),
        cutoff_round_id: String(1002 + index),
        target_round_id: String(1003 + index),
        p_ppm: row.p_ppm?.split("|").map(Number),
        base_ppm: row.base_ppm?.split("|").map(Number),
      })),
    );
  });

  test("chains each forecast to the one before, and anyone can recompute the hash", async () => {
    const world = await createWorld();
    for (const hundredths of [150, 230, 1200, 100]) await world.turn(hundredths);
    const rows = await forecastsOf(world, world.tableId, { windows: true });
    expect(rows.filter(({ feature }) => feature === "next_color")).toHaveLength(3);
    expect(rows.length).toBeGreaterThan(12);
    let prev = "0".repeat(64);
    for (const [index, row] of rows.entries()) {
      expect([row.seq, row.prev_hash]).toEqual([BigInt(index + 1), prev]);
      const text = JSON.stringify({
        base_ppm: row.base_ppm.join("|"),
        cutoff_round_id: row.cutoff_round_id,
        feature: row.feature,
        forecast_id: row.forecast_id,
        history_hash: row.history_hash,
        horizon: String(row.horizon),
        issued_at: row.issued_at,
        model: "k7@1",
        p_ppm: row.p_ppm.join("|"),
        seq: String(row.seq),
        table: world.tableName,
        target_round_id: row.target_round_id,
      });
      prev = createHash("sha256").update(`${prev}\n${text}`).digest("hex");
      expect(row.hash).toBe(prev);
    }
    const [head] = await world.sql`
      select forecast_seq::text, forecast_hash, first_forecast_after_seq::text
      from tables
      where id = ${world.tableId}`;
    expect(head).toEqual({ forecast_seq: String(rows.length), forecast_hash: prev, first_forecast_after_seq: "2" });
    expect(new Set(rows.map(({ forecast_id }) => forecast_id)).size).toBe(rows.length);
  });

  test("names no target where ids tell nothing", async () => {
    const world = await createWorld({ tables: [{ round_ids: "opaque" }] });
    await world.play([{ hundredths: 150, roundId: "aa" }]);
    await world.play([{ hundredths: 150, roundId: "zz", afterGap: false }]);
    await world.issue();
    expect(await forecastsOf(world)).toMatchObject([{ cutoff_round_id: "zz", target_round_id: null }]);
  });

  test("shows callers the forecast, and none as soon as nothing was issued after the newest round", async () => {
    const world = await createWorld();
    expect(await shownOf(world)).toBeNull();
    await world.turn(150);
    expect(await shownOf(world), "a table that never had a forecast shows none").toBeNull();
    await world.turn(300);
    const [row] = await forecastsOf(world);
    expect(await shownOf(world)).toEqual({
      cutoff_seq: "2",
      next_color: {
        forecast_id: row?.forecast_id,
        issued_at: row?.issued_at,
        after_round_id: "1002",
        target_round_id: "1003",
        model: "k7@1",
        p_ppm: BANDS.map(({ name }, index) => [name, row?.p_ppm[index]]),
        base_ppm: BANDS.map(({ name }, index) => [name, row?.base_ppm[index]]),
        hash: row?.hash,
      },
    });
    await world.play([{ hundredths: 100, absentAgo: PAUSE_MS / 1000 + 1, requestedAgo: 0 }]);
    await world.issue();
    expect(await shownOf(world)).toEqual({ cutoff_seq: "3", next_color: null });
  });

  test("keeps showing the forecast that stands when only a late round came in", async () => {
    const world = await createWorld();
    await world.turn(150);
    await world.turn(150);
    const before = await shownOf(world);
    await world.play([{ hundredths: 999, roundId: "5", late: true, source: "history" }]);
    const done = await world.issue();
    expect(done).toMatchObject({ learned: 0, issued: 0, refused: 0 });
    expect(await shownOf(world)).toEqual(before);
    expect((await stateOf(world))?.learned_seq).toBe(3n);
  });

  test("speaks of the round after the newest on-time one also where a late one came in after it", async () => {
    const world = await createWorld();
    await world.turn(150);
    await world.play([150]);
    await world.play([{ hundredths: 999, roundId: "5", late: true, source: "history" }]);
    expect(await world.issue()).toMatchObject({ learned: 1, issued: 1, unfinished: false });
    expect(await forecastsOf(world)).toMatchObject([{ cutoff_seq: 2n }]);
    expect((await stateOf(world))?.learned_seq).toBe(3n);
  });

  test("twice is once: a second run learns nothing and issues nothing", async () => {
    const world = await createWorld();
    await world.turn(150);
    await world.turn(150);
    const [state, rows] = [await stateOf(world), await forecastsOf(world)];
    expect(await world.issue()).toEqual({
      learned: 0,
      issued: 0,
      windows: 0,
      refused: 0,
      unfinished: false,
      damaged: [],
      unread: [],
    });
    const both = await Promise.all([world.issue(), world.issue(), world.issue()]);
    expect(both.map(({ issued }) => issued)).toEqual([0, 0, 0]);
    expect(await stateOf(world)).toEqual(state);
    expect(await forecastsOf(world)).toEqual(rows);
  });

  test("several at once learn each round once and issue one forecast", async () => {
    const world = await createWorld({ connections: 8 });
    await world.turn(150);
    for (const hundredths of [130, 250, 1100]) {
      await world.play([hundredths]);
      await Promise.all([world.issue(), world.issue(), world.issue(), world.issue()]);
    }
    expect((await forecastsOf(world)).map(({ cutoff_seq }) => cutoff_seq)).toEqual([2n, 3n, 4n]);
  });
});

describe("nothing is issued", () => {
  const silent: [string, (world: World) => Promise<void>][] = [
    ["before the first round", async () => undefined],
    ["after the first answer, before which nothing is known", (world) => world.play([150])],
    [
      "where the round could have been there at any time",
      (world) => world.play([{ hundredths: 150, absentAgo: null }]),
    ],
    [
      "once the pause after the newest round is over",
      (world) => world.play([{ hundredths: 150, absentAgo: PAUSE_MS / 1000 }]),
    ],
    ["after imported rounds", (world) => world.play([{ hundredths: 150, source: "import", absentAgo: 1 }])],
    [
      "while the house is paused",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: 1 }]);
        await pauseHouse(world.sql, { house: world.house, by: "test", reason: "test" });
      },
    ],
    [
      "while the house is disabled",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: 1 }]);
        await applyHouses(world.sql, [houseEntry({ id: "other" })]);
      },
    ],
    [
      "while the table is disabled",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: 1 }]);
        await world.sql`update tables set enabled = false where id = ${world.tableId}`;
      },
    ],
    [
      "while an answer is not read yet",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: 1 }]);
        await saveUnread(world.sql, world.tableId);
      },
    ],
  ];
  test.each(silent)("%s, but everything is learned", async (_, prepare) => {
    const world = await createWorld();
    await prepare(world);
    const done = await world.issue();
    expect(done.issued).toBe(0);
    expect(await forecastsOf(world)).toEqual([]);
    const [row] = await world.sql<{ behind: boolean }[]>`
      select t.last_seq > coalesce(s.learned_seq, 0) as behind
      from tables t
      left join model_states s on s.table_id = t.id
      where t.id = ${world.tableId}`;
    expect(row?.behind).toBe(false);
  });

  test("but it is tried again while the pause lasts, also without a new round", async () => {
    const world = await createWorld();
    await world.play([{ hundredths: 150, absentAgo: 1 }]);
    await saveUnread(world.sql, world.tableId);
    expect(await world.issue()).toMatchObject({ learned: 1, issued: 0, refused: 1 });
    expect(await isToIssue(world)).toBe(true);
    await readAll(world.sql, world.tableId);
    expect(await world.issue()).toMatchObject({ learned: 0, issued: 1, refused: 0 });
    expect(await isToIssue(world)).toBe(false);
  });

  test("and after a pause of the house is over its newest round may still be spoken of", async () => {
    const world = await createWorld();
    await world.play([{ hundredths: 150, absentAgo: 1 }]);
    await pauseHouse(world.sql, { house: world.house, by: "test", reason: "test" });
    await world.issue();
    expect(await isToIssue(world)).toBe(false);
    await resumeHouse(world.sql, world.house);
    expect(await isToIssue(world)).toBe(true);
    expect(await world.issue()).toMatchObject({ issued: 1 });
  });

  test("for the second and later rounds of one answer: only the newest has a forecast after it", async () => {
    const world = await createWorld();
    await world.turn(150);
    await world.play([150, 300, 1500]);
    expect(await world.issue()).toMatchObject({ learned: 3, issued: 1 });
    expect(await forecastsOf(world)).toMatchObject([{ cutoff_seq: 4n }]);
  });
});

describe("learning", () => {
  test("takes the on-time rounds in seq order and passes over late ones, whatever order they came in", async () => {
    const world = await createWorld();
    const rounds = generatedRounds(300);
    for (const [index, { hundredths, afterGap }] of rounds.entries()) {
      await world.play([{ hundredths, afterGap, roundId: String(5000 + index) }]);
      if (index % 7 === 3) {
        await world.play([{ hundredths: 55_500, roundId: String(index), late: true, source: "computed" }]);
      }
      if (index % 11 === 0) await world.issue();
    }
    await world.issue();
    const model = modelOf(BANDS, 0.01);
    const state = emptyState(model);
    learnRounds(
      model,
      state,
      BANDS,
      rounds.map((round) => ({
        ...round,
        color: BANDS.find(({ below }) => below === null || round.hundredths < below)?.name ?? "",
      })),
    );
    const expected = encodeState(model, state);
    expect((await stateOf(world))?.state.equals(expected)).toBe(true);
    expect((await stateOf(world))?.state_hash).toBe(stateHash(expected));
  });

  test("forgets what came last where rounds were missing", async () => {
    const world = await createWorld();
    await world.play([150, 1200, 150]);
    await world.play([{ hundredths: 150, roundId: "2000" }]);
    await world.issue();
    const row = await stateOf(world);
    const model = modelOfState(row?.state ?? Buffer.alloc(0));
    const { memory } = decodeState(model, row?.state ?? Buffer.alloc(0));
    expect([memory[model.at.previous], memory[model.at.gap]]).toEqual([0, -1]);
  });

  test("goes through an imported history of 12,000 rounds in several transactions, and issues nothing from it", async () => {
    const world = await createWorld();
    const rounds = generatedRounds(12_000);
    await world.play(rounds.map(({ hundredths }) => ({ hundredths, source: "import" })));
    let commits = 0;
    const done = await issueForHouse(world.sql, world.house, {
      signal: new AbortController().signal,
      committed: () => (commits += 1),
    });
    expect(done).toEqual({
      learned: 12_000,
      issued: 0,
      windows: 0,
      refused: 0,
      unfinished: false,
      damaged: [],
      unread: [],
    });
    expect(commits).toBe(3);
    await world.play([{ hundredths: 150, absentAgo: 1 }]);
    expect(await world.issue()).toMatchObject({ learned: 1, issued: 1 });
    expect(await forecastsOf(world)).toMatchObject([{ cutoff_seq: 12_001n }]);
  });

  test("lets a live table speak while another learns a long history", async () => {
    const world = await createWorld({ tables: [{}, {}], ownDatabase: true });
    const [history = 0, live = 0] = world.tableIds;
    await world.turn(150, live);
    await world.play(
      generatedRounds(6000).map(({ hundredths }) => ({ hundredths, source: "import" })),
      history,
    );
    await world.play([150], live);
    const learnedThen: (bigint | undefined)[] = [];
    // the live table's forecast is there before the history is through
    await world.sql.unsafe(`
      create table seen (learned bigint);
      create function look() returns trigger language plpgsql as $$
      begin
        insert into seen select learned_seq from model_states where table_id = ${history};
        return new;
      end $$;
      create trigger look after insert on forecasts for each row
        when (new.feature = 'next_color') execute function look();
    `);
    expect(await world.issue()).toMatchObject({ learned: 6001, issued: 1, unfinished: false });
    for (const row of await world.sql<{ learned: bigint }[]>`select learned from seen`) learnedThen.push(row.learned);
    expect(learnedThen).toEqual([2500n]);
    expect((await stateOf(world, history))?.learned_seq).toBe(6000n);
  });

  test("serves every table of a house that has more than one transaction locks", async () => {
    const world = await createWorld({ tables: Array.from({ length: 130 }, () => ({})) });
    for (const id of world.tableIds) await world.play([{ hundredths: 150, absentAgo: 1 }], id);
    expect(await world.issue()).toMatchObject({ learned: 130, issued: 130, unfinished: false });
  });

  test("keeps bands and edge of the table's first round when the file declares another edge", async () => {
    const world = await createWorld();
    await world.turn(150);
    const table = tableEntry({ market: "m0", house_edge: 0.05, pause_ms: PAUSE_MS });
    const entry = houseEntry({ id: world.house, tables: [table] });
    await applyHouses(world.sql, [entry]);
    await world.turn(150);
    expect(modelOfState((await stateOf(world))?.state ?? Buffer.alloc(0)).edge).toBe(0.01);
  });
});

describe("one table's trouble stays its own", () => {
  test("a refusal costs neither what was learned nor the forecasts of other tables", async () => {
    const world = await createWorld({ tables: [{}, {}, {}] });
    for (const id of world.tableIds) await world.play([{ hundredths: 150, absentAgo: 1 }], id);
    await saveUnread(world.sql, world.tableIds[1] ?? 0);
    expect(await world.issue()).toMatchObject({ learned: 3, issued: 2, refused: 1 });
    const counts = await Promise.all(world.tableIds.map(async (id) => (await forecastsOf(world, id)).length));
    expect(counts).toEqual([1, 0, 1]);
    for (const id of world.tableIds) expect((await stateOf(world, id))?.learned_seq).toBe(1n);
    const open = await world.sql`
      select table_id
      from open_forecasts
      where table_id = any(${world.tableIds}::integer[])
        and feature = 'next_color'
      order by table_id`;
    expect(open.map(({ table_id }) => table_id as number)).toEqual([world.tableIds[0], world.tableIds[2]]);
  });

  test("a damaged state stops its table and no other, and nothing is built on it", async () => {
    const world = await createWorld({ tables: [{}, {}] });
    const [damaged = 0, sound = 0] = world.tableIds;
    await world.turn(150, damaged);
    await world.turn(150, sound);
    await world.sql`
      update model_states
      set state = set_byte(state, length(state) - 9, get_byte(state, length(state) - 9) # 1)
      where table_id = ${damaged}`;
    const before = await stateOf(world, damaged);
    await world.play([150], damaged);
    await world.play([150], sound);
    const done = await world.issue();
    expect(done).toMatchObject({ learned: 1, issued: 1, damaged: [{ table: world.tableName }] });
    expect(done.damaged[0]?.reason).toContain(`expected a model state with hash ${before?.state_hash}`);
    expect(await stateOf(world, damaged)).toEqual(before);
  });
});
