import { describe, expect, test } from "vitest";
import { emptyState } from "../../../src/forecasts/model/k7.ts";
import type { PublishedForecast, PublishedWindow } from "../../../src/forecasts/issue/published-forecast.ts";
import { learnRounds, modelOf } from "../../../src/forecasts/model/table-model.ts";
import { hitProbability, windowBaselinePpm, windowsOf } from "../../../src/forecasts/model/windows.ts";
import { generatedRounds, readFixture } from "../streams.ts";
import { createWorld, saveConflict, type Play, type World } from "../world.ts";

const COLORS = ["blue", "purple", "pink"];
const BANDS = [
  { name: "blue", below: 200 },
  { name: "purple", below: 1000 },
  { name: "pink", below: null },
];
const FEATURES = COLORS.flatMap((color) => [50, 80, 90].map((target) => `window:${color}:${target}`));

interface WindowRow {
  seq: number;
  feature: string;
  cutoff: number;
  target: string | null;
  horizon: number;
  p: number;
  base: number;
}

function windowsIn({ sql, tableId }: World, feature: string | null = null): Promise<WindowRow[]> {
  return sql<WindowRow[]>`
    select
      seq::integer, feature, cutoff_seq::integer as cutoff, target_round_id as target, horizon, p_ppm[1] as p,
      base_ppm[1] as base
    from forecasts
    where table_id = ${tableId}
      and feature like 'window:%'
      and (${feature}::text is null or feature = ${feature})
    order by cutoff_seq, seq`;
}

async function shownOf({ sql, tableId }: World): Promise<PublishedWindow[]> {
  const [row] = await sql<{ forecast: PublishedForecast | null }[]>`
    select forecast
    from published_now
    where table_id = ${tableId}`;
  return row?.forecast?.windows ?? [];
}

/** A table whose first forecasts follow its second round: blue so far. */
async function withWindows(options: Parameters<typeof createWorld>[0] = {}): Promise<World> {
  const world = await createWorld(options);
  await world.play([150]);
  await world.play([150]);
  await world.issue();
  return world;
}

describe("windows", () => {
  test("are issued beside the next color, by color and target, with one number, and name the first round they speak of", async () => {
    const world = await withWindows();
    const rows = await windowsIn(world);
    expect(rows.map(({ feature }) => feature)).toEqual(FEATURES);
    expect(rows.map(({ seq }) => seq)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10]);
    for (const { cutoff, target, p, feature } of rows) {
      expect([cutoff, target]).toEqual([2, "1003"]);
      expect(p).toBeGreaterThanOrEqual(Number(feature.split(":")[2]) * 10_000);
    }
    const [times] = await world.sql`
      select count(distinct issued_at)::integer as times, bool_and(cardinality(base_ppm) = 1 or feature = 'next_color') as one
      from forecasts
      where table_id = ${world.tableId}`;
    expect(times).toEqual({ times: 1, one: true });
  });

  test("are the golden ones on true rounds, each issued when the one before of its feature has ended and no sooner", async () => {
    const world = await createWorld();
    const golden = readFixture("k7_golden.csv").slice(0, 121);
    for (const { multiplier } of golden.slice(0, 120)) {
      await world.play([Math.round(Number(multiplier) * 100)]);
      await world.issue();
    }
    for (const feature of FEATURES) {
      const expected: object[] = [];
      for (let cutoff = 2; cutoff <= 120;) {
        // the row of the next round says what was known before it
        const [horizon = 0, p] = (golden[cutoff]?.[feature] ?? "").split(":").map(Number);
        expected.push({ cutoff, horizon, p });
        cutoff += horizon;
      }
      expect(await windowsIn(world, feature)).toMatchObject(expected);
    }
  });

  test("of a live table are those of a pure replay of its rounds, gaps and late rounds and all", async () => {
    const world = await createWorld();
    const model = modelOf(BANDS, 0.01);
    const state = emptyState(model);
    const expected: object[] = [];
    const freeAt = new Map<string, number>();
    const rounds = generatedRounds(90).map(({ hundredths }, index) => ({ hundredths, afterGap: index % 17 === 11 }));
    let [id, seq] = [5000, 0];
    for (const { hundredths, afterGap } of rounds) {
      id += afterGap ? 4 : 1;
      await world.play([{ hundredths, roundId: String(id) }]);
      seq += 1;
      const color = COLORS[Number(hundredths >= 200) + Number(hundredths >= 1000)] ?? "";
      learnRounds(model, state, BANDS, [{ hundredths, color, afterGap }]);
      await world.issue();
      if (afterGap) freeAt.clear(); // every window that was open is void
      for (const [index, feature] of seq < 2 ? [] : FEATURES.entries()) {
        if ((freeAt.get(feature) ?? 0) > seq) continue;
        const window = windowsOf(model, state, Math.floor(index / 3))[index % 3];
        if (window == null) continue;
        const base = windowBaselinePpm(model, state, Math.floor(index / 3), window.rounds);
        expected.push({ feature, cutoff: seq, horizon: window.rounds, p: window.pPpm, base });
        freeAt.set(feature, seq + window.rounds);
      }
    }
    expect(await windowsIn(world)).toMatchObject(expected);
  });

  test("end at their nominal end, hit or not, whether or not the scoring job has come", async () => {
    const world = await withWindows();
    const [first] = await windowsIn(world, "window:purple:50");
    expect(first?.horizon).toBe(2);
    await world.play([300]); // a hit
    await world.issue();
    expect(await windowsIn(world, "window:purple:50")).toHaveLength(1);
    await world.play([150]);
    await world.issue();
    expect((await windowsIn(world, "window:purple:50")).map(({ cutoff }) => cutoff)).toEqual([2, 4]);
    const [scores] = await world.sql`select count(*)::integer as n from scores where table_id = ${world.tableId}`;
    expect(scores?.["n"]).toBe(0);
  });

  test("are not counted on by late rounds", async () => {
    const world = await withWindows();
    for (let n = 0; n < 4; n++) {
      await world.play([{ hundredths: 1500, roundId: String(n + 1), late: true, source: "computed" }]);
    }
    await world.play([150]);
    await world.issue();
    expect((await windowsIn(world, "window:blue:50")).map(({ cutoff }) => cutoff)).toEqual([2, 7]);
    expect(await windowsIn(world, "window:blue:80")).toHaveLength(1);
    expect((await shownOf(world)).find(({ feature }) => feature === "window:pink:90")).toMatchObject({
      now: { rounds_left: ((await windowsIn(world, "window:pink:90"))[0]?.horizon ?? 0) - 1 },
    });
  });

  const faults: [string, Play, (world: World) => Promise<void>][] = [
    ["a gap", { hundredths: 150, roundId: "1009" }, async () => undefined],
    ["a round asked for before the issue", { hundredths: 150, requestedAgo: 60, absentAgo: 61 }, async () => undefined],
    ["a second result", { hundredths: 150 }, (world) => saveConflict(world.sql, world.tableId, "1003")],
  ];
  test.each(faults)("are void at once with %s: the next ones come with the next forecast", async (_, round, spoil) => {
    const world = await withWindows();
    await world.play([round]);
    await spoil(world);
    await world.issue();
    const rows = await windowsIn(world);
    expect(rows.map(({ feature }) => feature)).toEqual([...FEATURES, ...FEATURES]);
    expect(new Set(rows.slice(9).map(({ cutoff }) => cutoff))).toEqual(new Set([3]));
  });

  test("are not issued again while a conflict is on a round before them", async () => {
    const world = await withWindows();
    await saveConflict(world.sql, world.tableId, "1002");
    await world.play([150]);
    await world.issue();
    expect(await windowsIn(world, "window:pink:90")).toHaveLength(1);
  });

  test("are not issued of a color so rare that 400 rounds stay below the target", async () => {
    const colors = [{ name: "low", below: 2 }, { name: "mid", below: 200 }, { name: "rare" }];
    const world = await withWindows({ tables: [{ colors }] });
    const features = new Set((await windowsIn(world)).map(({ feature }) => feature));
    expect(features).toContain("window:mid:90");
    expect(features).toContain("window:rare:50");
    expect(features).not.toContain("window:rare:90");
    expect((await shownOf(world)).map(({ feature }) => feature)).toEqual([...features]);
  });

  test("twice is once, also at the same time", async () => {
    const world = await createWorld({ connections: 8 });
    await world.play([150]);
    for (const hundredths of [150, 250, 1100, 150]) {
      await world.play([hundredths]);
      await Promise.all([world.issue(), world.issue(), world.issue(), world.issue()]);
    }
    const rows = await windowsIn(world);
    for (const feature of FEATURES) {
      const own = rows.filter((row) => row.feature === feature);
      for (const [index, { cutoff }] of own.slice(1).entries()) {
        expect(cutoff).toBeGreaterThanOrEqual((own[index]?.cutoff ?? 0) + (own[index]?.horizon ?? 0));
      }
    }
    expect(await world.issue()).toMatchObject({ issued: 0, windows: 0 });
  });
});

describe("open windows are published", () => {
  test("with what is left of them and their chance now, also where nothing can be issued", async () => {
    const world = await withWindows();
    const issued = await windowsIn(world);
    expect(await shownOf(world)).toMatchObject(
      issued.map(({ feature, horizon, p, base }) => ({
        feature,
        model: "k7@1",
        after_round_id: "1002",
        rounds: horizon,
        p_ppm: p,
        base_ppm: base,
        now: { rounds_left: horizon, p_ppm: p },
      })),
    );
    await world.play([{ hundredths: 150, absentAgo: null }]);
    expect(await world.issue()).toMatchObject({ learned: 1, issued: 0, windows: 0 });
    const model = modelOf(BANDS, 0.01);
    const state = emptyState(model);
    learnRounds(
      model,
      state,
      BANDS,
      [1, 2, 3].map(() => ({ hundredths: 150, color: "blue", afterGap: false })),
    );
    const open = issued.filter(({ horizon }) => horizon > 1);
    expect((await shownOf(world)).map(({ feature, now }) => ({ feature, ...now }))).toEqual(
      open.map(({ feature, horizon }) => {
        const color = COLORS.indexOf(feature.split(":")[1] ?? "");
        const now = Math.floor(hitProbability(model, state, color, horizon - 1) * 1e6 + 0.5);
        return { feature, rounds_left: horizon - 1, p_ppm: color === 0 ? null : now };
      }),
    );
  });

  test("until they end, and not again", async () => {
    const world = await withWindows();
    await world.play([{ hundredths: 150, absentAgo: null, roundId: "1009" }]);
    await world.issue();
    expect(await shownOf(world)).toEqual([]);
  });
});

describe("the database refuses a window", () => {
  /** Inserts a window after the newest round past all our code. */
  async function forge({ sql, tableId }: World, feature: string, { values = "{500000}", horizon = 1 } = {}) {
    await sql`
      insert into forecasts (
        table_id, seq, forecast_id, model, feature, issued_at, issue_hour, cutoff_seq, cutoff_round_id, history_hash,
        horizon, p_ppm, base_ppm, prev_hash, hash
      )
      select
        ${tableId}, 900000 + floor(random() * 1000000), gen_random_uuid()::text, 'k7@1', ${feature}, at,
        date_trunc('hour', at, 'UTC'), seq, round_id, history_hash, ${horizon}, ${values}::integer[],
        ${values}::integer[], '', ''
      from (select clock_timestamp() as at) clock
      cross join (
        select seq, round_id, history_hash
        from rounds
        where table_id = ${tableId}
        order by seq desc
        limit 1
      ) cutoff`;
  }

  test("while one of its feature is open, and takes it as soon as that has ended", async () => {
    const world = await withWindows();
    await world.play([150]);
    await expect(forge(world, "window:pink:50")).rejects.toMatchObject({
      code: "RH001",
      message: expect.stringMatching(/^a window must follow the end of the one before; f\d+-8 of table \d+ is open$/),
    });
    await forge(world, "window:blue:50");
    await saveConflict(world.sql, world.tableId, "1003");
    await forge(world, "window:pink:50");
  });

  test("that comes at the same time as another of its feature", async () => {
    const world = await createWorld({ connections: 8 });
    await world.play([150]);
    for (let round = 0; round < 12; round++) {
      await world.play([150]);
      const forging = Array.from({ length: 5 }, () => forge(world, "window:pink:80", { horizon: 4 }));
      const outcomes = await Promise.allSettled(forging);
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(round % 4 === 0 ? 1 : 0);
    }
    expect((await windowsIn(world, "window:pink:80")).map(({ cutoff }) => cutoff)).toEqual([2, 6, 10]);
  });

  test("with more than one probability, and a next color of more than one round", async () => {
    const world = await createWorld();
    await world.play([{ hundredths: 150, absentAgo: 1 }]);
    const untrue = { code: "RH001" };
    await expect(forge(world, "window:pink:50", { values: "{500000,500000}" })).rejects.toMatchObject(untrue);
    await expect(forge(world, "next_color", { horizon: 2 })).rejects.toMatchObject(untrue);
  });
});
