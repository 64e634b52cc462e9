import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { setPlan } from "../../src/callers/plan-store.ts";
import { runRollingCalibration } from "../../src/calibration/calibrate.ts";
import { writeNotice } from "../../src/corrections/operator-notice.ts";
import { eventually } from "../support/eventually.ts";
import { allowSlowness, announce, NO_SET, play, playLate, rewrite, score, tableIdOf } from "./play.ts";
import { ANNOUNCED, makeKey, makeWorld, secondsAgo, type World } from "./world.ts";

const NOTICE = "Information only. Rounds come from the house's random generator; no outcome is guaranteed. 18+.";
const FIELDS = ["house", "game", "market", "state", "generated_at", "calibration", "next_color", "windows"];
const CRASH = "alpha/crash/global";
const OPAQUE = "beta/crash/eu";

const at = z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}0Z$/);
const shares = z.record(z.string(), z.number());
const body = z.strictObject({
  ok: z.literal(true),
  plan: z.string(),
  notice: z.literal(NOTICE),
  forecasts: z.array(
    z.strictObject({
      house: z.string(),
      game: z.string(),
      market: z.string(),
      state: z.enum(["ready", "warming_up", "waiting", "silent", "paused"]),
      generated_at: at,
      calibration: z.strictObject({ version: z.int(), rounds: z.int(), as_of: at }).nullable(),
      next_color: z
        .strictObject({
          forecast_id: z.string(),
          issued_at: at,
          after_round_id: z.string(),
          target_round_id: z.string().nullable(),
          model: z.string().regex(/^k7@1-[0-9a-f]{12}$/),
          probabilities: shares,
          baseline: shares,
          hash: z.string().regex(/^[0-9a-f]{64}$/),
        })
        .nullable(),
      windows: z.array(
        z.strictObject({
          feature: z.string(),
          color: z.string(),
          target: z.int(),
          forecast_id: z.string(),
          issued_at: at,
          after_round_id: z.string(),
          rounds: z.int().min(1).max(400),
          probability: z.number(),
          baseline: z.number(),
          now: z.strictObject({
            rounds_left: z.int().min(1),
            probability: z.number().nullable(),
            scored: z.literal(false),
          }),
          measured: z
            .strictObject({
              period: z.literal("30d"),
              sample_size: z.int(),
              hit_rate: z.number().nullable(),
              interval_95: z.tuple([z.number(), z.number()]).nullable(),
            })
            .nullable(),
          hash: z.string().regex(/^[0-9a-f]{64}$/),
        }),
      ),
    }),
  ),
});

let world: World;

beforeAll(async () => {
  world = await makeWorld({ BUFFER_ROUNDS: 5 }, { times: ANNOUNCED });
  await allowSlowness(world);
});
afterAll(() => world.close());

async function forecasts(query = "", of = world) {
  const response = await of.get(`/api/v1/forecasts${query}`);
  expect(response.status).toBe(200);
  return body.parse(await response.json()).forecasts;
}

const ofTable = async (table: string, of = world) => {
  const [house = "", game = ""] = table.split("/");
  const [forecast] = await forecasts(`?house=${house}&game=${game}`, of);
  if (forecast === undefined) throw new Error(`expected ${table} to be listed`);
  return forecast;
};

const becomes = (table: string, state: string) =>
  eventually(async () => {
    const forecast = await ofTable(table);
    expect(forecast.state).toBe(state);
    return forecast;
  });

const QUIET = { next_color: null, windows: [] };

/** The windows of a table in the order in which they are shown. */
const FEATURES = ["blue", "purple", "pink"].flatMap((color) =>
  [50, 80, 90].map((target) => `window:${color}:${target}`),
);

/** The newest forecast of the next color as it is stored. */
async function stored(table: string) {
  const [row] = await world.sql<
    { forecastId: string; issuedAt: string; after: string; p: number[]; base: number[]; hash: string; seq: bigint }[]
  >`
    select
      forecast_id as "forecastId", utc_text(issued_at) as "issuedAt", cutoff_round_id as after, p_ppm as p,
      base_ppm as base, hash, seq
    from forecasts
    where table_id = ${await tableIdOf(world, table)}
      and feature = 'next_color'
    order by seq desc
    limit 1`;
  if (row === undefined) throw new Error(`expected a forecast of ${table}`);
  return row;
}

describe("/forecasts", () => {
  it("lists every table of the plan with exactly these fields in this order, and no number before the first forecast", async () => {
    const response = await world.get("/api/v1/forecasts");
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(response.headers.get("x-data-age")).toMatch(/^\d+$/);
    const text = await response.text();
    const head = JSON.stringify({ ok: true, plan: "Pro", notice: NOTICE }).slice(0, -1);
    expect(text.slice(0, head.length + 52)).toBe(
      `${head},"forecasts":[{"house":"alpha","game":"crash","market"`.slice(0, head.length + 52),
    );
    const listed = body.parse(JSON.parse(text)).forecasts;
    expect(listed.map((one) => Object.keys(one))).toEqual([FIELDS, FIELDS, FIELDS, FIELDS]);
    expect(listed.map(({ house, game, market }) => `${house}/${game}/${market}`)).toEqual([
      CRASH,
      "alpha/dice/eu",
      OPAQUE,
      "gamma/rocket/one",
    ]);
    for (const one of listed) expect(one).toMatchObject({ state: "warming_up", calibration: null, ...QUIET });
  });

  it("is still warming up after the first round, after which nothing may be issued", async () => {
    await play(world, CRASH, [150]);
    await eventually(async () => (await (await world.get("/api/v1/rounds?house=alpha")).text()).includes("1001"));
    expect(await ofTable(CRASH)).toMatchObject({ state: "warming_up", ...QUIET });
  });

  it("returns a forecast to the letter as issued and hashed, each probability with its baseline", async () => {
    await play(world, CRASH, [230]);
    await becomes(CRASH, "ready");
    const { forecastId, issuedAt, after, p, base, hash } = await stored(CRASH);
    expect(after).toBe("1002");
    const inColors = ([blue, purple, pink]: number[]) =>
      `{"blue":${(blue ?? 0) / 1e6},"purple":${(purple ?? 0) / 1e6},"pink":${(pink ?? 0) / 1e6}}`;
    const text = await (await world.get("/api/v1/forecasts?house=alpha&game=crash")).text();
    expect(text).toContain(
      `"calibration":null,"next_color":{"forecast_id":"${forecastId}","issued_at":"${issuedAt}",` +
        `"after_round_id":"1002","target_round_id":"1003","model":"k7@1-4c321756cd3f","probabilities":${inColors(p)},` +
        `"baseline":${inColors(base)},"hash":"${hash}"},"windows":[{"feature":"window:blue:50",`,
    );
    const { next_color: nextColor } = await ofTable(CRASH);
    for (const shown of [nextColor?.probabilities, nextColor?.baseline]) {
      const ppm = Object.values(shown ?? {}).map((share) => Math.round(share * 1e6));
      expect(ppm.reduce((sum, one) => sum + one, 0)).toBe(1_000_000);
    }
  });

  it("names no target if ids are opaque, because the next id is unknown", async () => {
    await play(world, OPAQUE, [{ hundredths: 150, roundId: "r1" }]);
    await play(world, OPAQUE, [{ hundredths: 150, roundId: "r2" }]);
    expect((await becomes(OPAQUE, "ready")).next_color).toMatchObject({ after_round_id: "r2", target_round_id: null });
  });
});

describe("a forecast", () => {
  it("is withdrawn by a round after which none may be issued, and the next is readable as soon as it is announced", async () => {
    const before = (await ofTable(CRASH)).next_color;
    await play(world, CRASH, [1150], NO_SET);
    expect(await becomes(CRASH, "waiting")).toMatchObject({ next_color: null });
    await play(world, CRASH, [180]);
    const after = (await becomes(CRASH, "ready")).next_color;
    expect(after?.after_round_id).toBe("1004");
    expect(after?.forecast_id).not.toBe(before?.forecast_id);
  });

  it("remains through late rounds, whether they are learned yet or not", async () => {
    const { next_color: before, generated_at: then } = await ofTable(CRASH);
    await playLate(world, CRASH, ["7"]);
    await eventually(async () => expect((await ofTable(CRASH)).generated_at > then).toBe(true));
    expect(await ofTable(CRASH)).toMatchObject({ state: "ready", next_color: before });
    const id = await tableIdOf(world, CRASH);
    await world.sql.begin((tx) => writeNotice(tx, [id], { text: "seen after it was learned", by: "ann" }));
    await announce(world);
    await eventually(async () => (await (await world.get("/api/v1/games")).text()).includes("Seen after it"));
    expect(await ofTable(CRASH)).toMatchObject({ state: "ready", next_color: before });
  });

  it("remains for a process that begins after more late rounds than it holds", async () => {
    await playLate(
      world,
      OPAQUE,
      Array.from({ length: 8 }, (_, n) => `late${n}`),
    );
    const later = await makeWorld({ BUFFER_ROUNDS: 5 }, { on: world });
    try {
      expect((await ofTable(OPAQUE, later)).state).toBe("ready");
      await eventually(async () => expect(await forecasts("", later)).toEqual(await forecasts()));
    } finally {
      await later.close();
    }
  });

  it("is not listed while its table is silent, even if its house is live, and listed again with the next round", async () => {
    await play(world, "alpha/dice/eu", [150]);
    await rewrite(world, CRASH, { last_polled_round_at: secondsAgo(301) });
    expect(await becomes(CRASH, "silent")).toMatchObject(QUIET);
    expect(await (await world.get("/api/v1/games?house=alpha&game=crash")).text()).toContain('"status":"live"');
    await play(world, CRASH, [150]);
    await becomes(CRASH, "ready");
  });

  it("is not shown while its house is paused, and is again afterwards", async () => {
    await world.sql`update houses set paused_at = now(), paused_by = 'ann', pause_reason = 'test' where id = 'alpha'`;
    await eventually(async () => {
      await announce(world);
      const states = (await forecasts("?house=alpha")).map(({ state, next_color: shown }) => [state, shown]);
      return expect(states).toEqual([
        ["paused", null],
        ["paused", null],
      ]);
    });
    expect((await ofTable(OPAQUE)).state).toBe("ready");
    await world.sql`update houses set paused_at = null, paused_by = null, pause_reason = null`;
    await eventually(async () => {
      await announce(world);
      return expect((await ofTable(CRASH)).state).toBe("ready");
    });
  });

  it("has the newest calibration next to it, in every state", async () => {
    const [run] = await world.sql<{ id: string }[]>`
      insert into calibration_runs (table_id, kind, model)
      select table_id, 'rolling', model from table_heads where table_id = ${await tableIdOf(world, CRASH)}
      returning id::text as id`;
    await runRollingCalibration(world.sql, run?.id ?? "", new AbortController().signal);
    await announce(world);
    await eventually(async () => expect((await ofTable(CRASH)).calibration).toMatchObject({ version: 1 }));
    await rewrite(world, CRASH, { last_polled_round_at: secondsAgo(301) });
    expect((await becomes(CRASH, "silent")).calibration).toMatchObject({ version: 1 });
    await rewrite(world, CRASH, { last_polled_round_at: secondsAgo(0) });
  });
});

describe("a window", () => {
  it("is shown as it was issued and hashed, to the letter, with what is left of it and nothing measured yet", async () => {
    const { windows } = await ofTable("alpha/dice/eu");
    expect(windows).toEqual([]);
    await play(world, "alpha/dice/eu", [230]);
    expect((await becomes("alpha/dice/eu", "ready")).windows.map(({ feature }) => feature)).toEqual(FEATURES);
    const [row] = await world.sql<{ json: string }[]>`
      select
        '{"feature":"window:pink:80","color":"pink","target":80,"forecast_id":"' || forecast_id || '","issued_at":"'
          || utc_text(issued_at) || '","after_round_id":"' || cutoff_round_id || '","rounds":' || horizon
          || ',"probability":' || p_ppm[1]::float8 / 1000000 || ',"baseline":' || base_ppm[1]::float8 / 1000000
          || ',"now":{"rounds_left":' || horizon || ',"probability":' || p_ppm[1]::float8 / 1000000
          || ',"scored":false},"measured":null,"hash":"' || hash || '"}' as json
      from forecasts
      where table_id = ${await tableIdOf(world, "alpha/dice/eu")}
        and feature = 'window:pink:80'`;
    expect(await (await world.get("/api/v1/forecasts?game=dice")).text()).toContain(row?.json ?? "nothing");
  });

  it("is updated while it is open: its remaining chance changes, the issued one does not", async () => {
    const before = await ofTable("alpha/dice/eu");
    await play(world, "alpha/dice/eu", [150], NO_SET);
    const leftOfLast = async () => (await ofTable("alpha/dice/eu")).windows.at(-1)?.now.rounds_left ?? 0;
    const then = before.windows.at(-1)?.now.rounds_left ?? 0;
    await eventually(async () => expect(await leftOfLast()).toBe(then - 1));
    // nothing can be issued after this round, but the windows continue, and those of blue have ended or have hit
    const waiting = await becomes("alpha/dice/eu", "waiting");
    expect(waiting.next_color).toBeNull();
    const pinks = (windows: typeof before.windows) => windows.filter(({ color }) => color === "pink");
    expect(pinks(waiting.windows)).toHaveLength(3);
    for (const [index, { now, ...stated }] of pinks(waiting.windows).entries()) {
      const { now: earlier, ...same } = pinks(before.windows)[index] ?? { now: undefined };
      expect(stated).toEqual(same);
      expect(now.rounds_left).toBe((earlier?.rounds_left ?? 0) - 1);
      expect(now.probability).toBeLessThan(earlier?.probability ?? 0);
    }
    const blues = waiting.windows.filter(({ color }) => color === "blue");
    expect(blues.map(({ now }) => now.probability)).toEqual(blues.map(() => null));
    expect(blues.length).toBeGreaterThan(0);
  });

  it("is followed by the next one of its feature with the first forecast after its end, never before", async () => {
    const before = await ofTable("alpha/dice/eu");
    await play(world, "alpha/dice/eu", [250]);
    const after = await becomes("alpha/dice/eu", "ready");
    expect(after.windows.map(({ feature }) => feature)).toEqual(FEATURES);
    const issuedNow = after.windows.filter(({ after_round_id: id }) => id === after.next_color?.after_round_id);
    const stillOpen = before.windows.filter(({ now }) => now.rounds_left > 1).map(({ feature }) => feature);
    expect(issuedNow.map(({ feature }) => feature)).toEqual(FEATURES.filter((one) => !stillOpen.includes(one)));
  });

  it("has the measured accuracy of its feature over thirty days, equal to that of /accuracy", async () => {
    await score(world, "alpha");
    const measuredOf = async (name: string) =>
      (await ofTable("alpha/dice/eu")).windows.find(({ feature }) => feature === name)?.measured;
    await eventually(async () => expect(await measuredOf("window:blue:50")).not.toBeNull());
    // one that has ended, with a hit, and one that waits for its end
    expect(await measuredOf("window:blue:50")).toMatchObject({ sample_size: 1, hit_rate: 1 });
    expect((await measuredOf("window:blue:50"))?.interval_95?.[1]).toBe(1);
    expect(await measuredOf("window:pink:90")).toEqual({
      period: "30d",
      sample_size: 0,
      hit_rate: null,
      interval_95: null,
    });
  });

  it("is not shown while its table is silent", async () => {
    await rewrite(world, "alpha/dice/eu", { last_polled_round_at: secondsAgo(301) });
    expect(await becomes("alpha/dice/eu", "silent")).toMatchObject(QUIET);
    await rewrite(world, "alpha/dice/eu", { last_polled_round_at: secondsAgo(0) });
    expect((await becomes("alpha/dice/eu", "ready")).windows).toHaveLength(9);
  });
});

describe("an ETag of forecasts", () => {
  it("spares what the caller has, and changes with a forecast, a state and a filter", async () => {
    const path = "/api/v1/forecasts?house=alpha";
    const etagOf = async (of = path) => (await world.get(of)).headers.get("etag") ?? "";
    const first = await etagOf();
    expect(await etagOf()).toBe(first);
    const spared = await world.get(path, { headers: { "If-None-Match": first } });
    expect([spared.status, await spared.text(), spared.headers.get("etag")]).toEqual([304, "", first]);
    expect(await etagOf("/api/v1/forecasts?house=beta")).not.toBe(first);
    await play(world, CRASH, [150], NO_SET);
    await becomes(CRASH, "waiting");
    const waiting = await etagOf();
    expect(waiting).not.toBe(first);
    await play(world, CRASH, [150]);
    await becomes(CRASH, "ready");
    expect(new Set([first, waiting, await etagOf()]).size).toBe(3);
  });
});

describe("whose forecasts are asked for", () => {
  it.each([
    ["?house=beta", [OPAQUE]],
    ["?game=crash", [CRASH, OPAQUE]],
    ["?market=eu&game=dice,crash", ["alpha/dice/eu", OPAQUE]],
    ["?house=alpha&game=rocket", []],
  ])("%s chooses %j", async (query, expected) => {
    expect((await forecasts(query)).map(({ house, game, market }) => `${house}/${game}/${market}`)).toEqual(expected);
  });

  it("must exist, be in the plan, and be asked for in known parameters", async () => {
    const refused = (query: string, key = world.key) =>
      world.refused(`/api/v1/forecasts${query}`, { headers: { "X-Api-Key": key } });
    expect(await refused("?house=nowhere")).toMatchObject({ status: 404, code: "table_not_found" });
    await setPlan(world.sql, "Starter", { houses: ["beta"] });
    const key = await makeKey(world.sql, "starter@example.com", "Starter");
    expect(await refused("?house=alpha", key)).toMatchObject({ status: 403, code: "table_not_in_plan" });
    for (const query of ["?limit=5", "?feature=next_color", "?after=5"]) {
      expect(await refused(query)).toMatchObject({ status: 400, code: "unknown_parameter" });
    }
    expect(await refused("?house=")).toMatchObject({ status: 400, code: "invalid_parameter" });
    const response = await world.get("/api/v1/forecasts", { headers: { "X-Api-Key": key } });
    const { plan, forecasts: listed } = body.parse(await response.json());
    expect([plan, listed.map(({ house }) => house)]).toEqual(["Starter", ["beta"]]);
  });
});
