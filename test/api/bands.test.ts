import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { runRollingCalibration } from "../../src/calibration/calibrate.ts";
import { readForecastsForExport } from "../../src/forecasts/chain/export-store.ts";
import { verify } from "../../src/verify/verify.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { roundhouse } from "../cli/world.ts";
import { generatedRounds } from "../forecasts/streams.ts";
import { eventually } from "../support/eventually.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import { allowSlowness, play, score, tableIdOf } from "./play.ts";
import { makeKey, makeWorld, type World } from "./world.ts";

const EIGHT = ["gray", "blue-2", "teal", "green", "amber", "red", "x7", "moon"];
/** One house whose tables have two, two, three and eight colors, by palette and by bands. */
const TABLES = [
  { market: "blaze", colors: "blaze", names: ["black", "green"] },
  { market: "line", colors: "jetx", names: ["blue", "pink"] },
  { market: "moon", colors: "bcgame", names: ["red", "green", "moon"] },
  {
    market: "eight",
    colors: EIGHT.map((name, place) =>
      place === 7 ? { name } : { name, below: [1.01, 1.2, 1.5, 2, 3, 5, 10][place] },
    ),
    names: EIGHT,
  },
];
/** Before the forecasts more than the 200 from which on readings compare the mix of colors. */
const ROUNDS = 230;
const FORECAST = 24;
/** The newest forecast waits for its round. */
const SCORED = FORECAST - 1;

const probabilities = z.record(z.string(), z.number());
const forecastsBody = z.object({
  forecasts: z.array(
    z.object({
      market: z.string(),
      state: z.string(),
      next_color: z.object({ probabilities, baseline: probabilities }),
      windows: z.array(z.object({ feature: z.string(), color: z.string(), target: z.int(), probability: z.number() })),
    }),
  ),
});
const accuracyBody = z.object({
  accuracy: z.array(
    z.object({
      feature: z.string(),
      market: z.string().nullable(),
      sample_size: z.int(),
      log_loss: z.number().nullable(),
      reliability: z.array(z.object({ n: z.int() })),
      references: z.array(z.object({ name: z.string(), log_loss: z.number().nullable() })),
    }),
  ),
});
const readingsBody = z.object({
  readings: z.array(z.object({ market: z.string(), text: z.string(), facts: z.array(z.object({ name: z.string() })) })),
});
const roundsBody = z.object({
  tables: z.array(
    z.object({ market: z.string(), rounds: z.array(z.object({ multiplier: z.number(), color: z.string() })) }),
  ),
});

let world: World;
const key: { own: string } = { own: "" };
const nameOf = (market: string) => `bands/crash/${market}`;

beforeAll(async () => {
  world = await makeWorld();
  const tables = TABLES.map(({ market, colors }) => tableEntry({ market, colors, house_edge: 0.03 }));
  await applyHouses(world.sql, [houseEntry({ id: "bands", name: "Bands", tables })]);
  key.own = await makeKey(world.sql, "bands@example.com", "Pro");
  await allowSlowness(world);
  // the newest rounds one by one, each with its forecasts before it; what comes before them fills the models
  const games = generatedRounds(ROUNDS).map(({ hundredths }) => hundredths);
  const learned = games.slice(0, -FORECAST);
  for (const { market } of TABLES) await play(world, nameOf(market), learned);
  for (const hundredths of games.slice(-FORECAST)) {
    for (const { market } of TABLES) await play(world, nameOf(market), [hundredths]);
  }
  await score(world, "bands");
  // the API hears of it a moment later
  await eventually(async () => {
    const { accuracy } = await get("/api/v1/accuracy?house=bands&market=eight&period=24h", accuracyBody);
    expect(accuracy[0]).toMatchObject({ sample_size: SCORED });
    return true;
  });
});
afterAll(() => world.close());

/** Payloads as a caller gets them who retries if the machine was too slow to count the call. */
function get<T>(path: string, body: z.ZodType<T>): Promise<T> {
  return eventually(async () => {
    const response = await world.get(path, { headers: { "X-Api-Key": key.own } });
    expect(response.status).toBe(200);
    return body.parse(await response.json());
  });
}

it.each(TABLES)(
  "a table of $names.length colors is forecast in exactly its colors: $market",
  async ({ market, names }) => {
    const { forecasts } = await get(`/api/v1/forecasts?house=bands&market=${market}`, forecastsBody);
    const [forecast] = forecasts;
    expect(forecast?.state).toBe("ready");
    for (const shares of [forecast?.next_color.probabilities, forecast?.next_color.baseline]) {
      expect(Object.keys(shares ?? {})).toEqual(names);
      expect(Object.values(shares ?? {}).reduce((sum, share) => sum + Math.round(share * 1e6), 0)).toBe(1_000_000);
    }
    const windows = forecast?.windows ?? [];
    expect([...new Set(windows.map(({ color }) => color))]).toEqual(names);
    for (const { feature, color, target, probability } of windows) {
      expect(feature).toBe(`window:${color}:${target}`);
      expect(probability).toBeGreaterThanOrEqual(target / 100);
    }
  },
);

it.each(TABLES)("its rounds carry the color of the band they fall in: $market", async ({ market, names }) => {
  const { tables } = await get(`/api/v1/rounds?house=bands&market=${market}&limit=100`, roundsBody);
  const rounds = tables[0]?.rounds ?? [];
  const places = rounds.map(({ color }) => names.indexOf(color));
  expect(rounds).toHaveLength(100);
  expect(Math.min(...places)).toBe(0);
  expect(Math.max(...places)).toBe(names.length - 1);
  // a higher multiplier is never of a lower band
  const rising = rounds.toSorted((a, b) => a.multiplier - b.multiplier).map(({ color }) => names.indexOf(color));
  expect(rising).toEqual(rising.toSorted((a, b) => a - b));
});

it.each(TABLES)(
  "its accuracy is measured over all its colors, in the rows and next to the references: $market",
  async ({ market, names }) => {
    const path = `/api/v1/accuracy?house=bands&market=${market}&period=24h`;
    const { accuracy } = await get(path, accuracyBody);
    const [next, ...windows] = accuracy;
    expect(next).toMatchObject({ feature: "next_color", sample_size: SCORED });
    expect(next?.reliability.reduce((sum, { n }) => sum + n, 0)).toBe(SCORED * names.length);
    // one who knows nothing would lose as much as ln K nats a round
    expect(next?.log_loss).toBeLessThan(Math.log(names.length) + 0.2);
    expect(next?.references.every(({ log_loss }) => (log_loss ?? 0) > 0)).toBe(true);
    expect(windows.length).toBeGreaterThan(0);
    for (const { feature } of windows) expect(names).toContain(feature.split(":")[1]);
  },
);

it("a house with tables of different numbers of colors is measured as a whole", async () => {
  const { accuracy } = await get("/api/v1/accuracy?house=bands&scope=house&period=24h", accuracyBody);
  const next = accuracy.find(({ feature }) => feature === "next_color");
  expect(next).toMatchObject({ market: null, sample_size: SCORED * TABLES.length });
  expect(next?.reliability.reduce((sum, { n }) => sum + n, 0)).toBe(SCORED * (2 + 2 + 3 + 8));
});

it.each(["en", "es", "pt"])(
  "a reading in %s names colors as the table does, also those no language has a word for",
  async (lang) => {
    for (const { market, names } of TABLES) {
      const { readings } = await get(`/api/v1/readings?house=bands&market=${market}&lang=${lang}`, readingsBody);
      const { text, facts } = readings[0] ?? { text: "", facts: [] };
      expect(text).not.toMatch(/undefined|null|NaN/);
      expect(text).toContain(names.at(-1));
      for (const name of names) expect(text, market).toContain(name);
      const shares = facts.flatMap(({ name }) => (name.startsWith("share:") ? [name.slice("share:".length)] : []));
      expect(shares).toEqual(names);
    }
  },
);

it("their calibrations meet the live state, and all that was published can be verified", async () => {
  const { sql } = world;
  for (const { market } of TABLES) {
    const [run] = await sql<{ id: string }[]>`
      insert into calibration_runs (table_id, kind, model)
      select table_id, 'rolling', model from table_heads where table_id = ${await tableIdOf(world, nameOf(market))}
      returning id::text`;
    const calibration = await runRollingCalibration(sql, run?.id ?? "", new AbortController().signal);
    expect(calibration).toMatchObject({ isMet: true });
  }
  expect(await verify(sql)).toMatchObject({
    ok: true,
    checked: { rounds: ROUNDS * TABLES.length },
    first_failure: null,
  });
});

it("the export has a share for each color in color order, and the color that occurred", async () => {
  for (const { market, names } of TABLES) {
    const pages = await Array.fromAsync(readForecastsForExport(world.sql, await tableIdOf(world, nameOf(market))));
    const rows = pages.flat();
    const next = rows.filter(({ feature }) => feature === "next_color");
    expect(next.length).toBe(FORECAST);
    for (const { p_ppm, outcome, status } of next) {
      expect(p_ppm.split("|")).toHaveLength(names.length);
      if (status === "scored") expect(names).toContain(outcome);
    }
  }
});

it("the command line shows them", async () => {
  const env = { DATABASE_URL: world.databaseUrl, REDIS_URL: "redis://127.0.0.1:9/0" };
  const shown = await roundhouse(
    ["accuracy", "--table", nameOf("eight"), "--feature", "next_color", "--period", "24h"],
    { env },
  );
  expect(shown).toMatchObject({ code: 0, stderr: "" });
  for (const name of EIGHT) expect(shown.stdout).toContain(name);
});
