import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { setPlan } from "../../src/callers/plan-store.ts";
import { generatedRounds } from "../forecasts/streams.ts";
import { promisesIn } from "../forecasts/words.ts";
import { eventually } from "../support/eventually.ts";
import { allowSlowness, announce, play, rewrite, tableIdOf } from "./play.ts";
import { ANNOUNCED, makeKey, makeWorld, secondsAgo, type World } from "./world.ts";

const NOTICES = {
  en: "Information only. Rounds come from the house's random generator; no outcome is guaranteed. 18+.",
  es: "Solo con fines informativos. Las rondas provienen del generador aleatorio de la casa; ningún resultado está garantizado. +18.",
  pt: "Apenas para fins informativos. As rodadas vêm do gerador aleatório da casa; nenhum resultado é garantido. +18.",
};
const FIELDS = ["house", "game", "market", "generated_at", "lang", "text", "facts", "based_on_rounds"];
const FACT_FIELDS = ["name", "value", "expected", "rounds", "unusual"];
const CRASH = "?house=alpha&game=crash";

const body = z.strictObject({
  ok: z.literal(true),
  plan: z.string(),
  notice: z.string(),
  readings: z.array(
    z.strictObject({
      house: z.string(),
      game: z.string(),
      market: z.string(),
      generated_at: z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}0Z$/),
      lang: z.enum(["en", "es", "pt"]),
      text: z.string(),
      facts: z.array(
        z.strictObject({
          name: z.string(),
          value: z.number().nullable(),
          expected: z.number().nullable(),
          rounds: z.int(),
          unusual: z.boolean(),
        }),
      ),
      based_on_rounds: z.int(),
    }),
  ),
});

let world: World;

beforeAll(async () => {
  world = await makeWorld({ BUFFER_ROUNDS: 5 }, { times: ANNOUNCED });
  await allowSlowness(world);
});
afterAll(() => world.close());

async function request(query = "", key = world.key) {
  const response = await world.get(`/api/v1/readings${query}`, { headers: { "X-Api-Key": key } });
  expect(response.status).toBe(200);
  return body.parse(await response.json());
}

async function crash(lang = "en") {
  const [reading] = (await request(`${CRASH}&lang=${lang}`)).readings;
  if (reading === undefined) throw new Error("expected the table to be listed");
  return reading;
}

/** Adds rounds when the newest reading is old enough for another. */
async function playRead(rounds: Parameters<typeof play>[2]): Promise<void> {
  const id = await tableIdOf(world, "alpha/crash/global");
  await world.sql`
    update published_readings
    set reading = jsonb_set(reading, '{made_at}', to_jsonb(${secondsAgo(10).replace("Z", "0000Z")}::text))
    where table_id = ${id}`;
  await play(world, "alpha/crash/global", rounds, { at: { tables: 4 } });
}

const becomes = (text: RegExp) =>
  eventually(async () => {
    const reading = await crash();
    expect(reading.text).toMatch(text);
    return reading;
  });

describe("/readings", () => {
  it("lists every table of the plan with exactly these fields, and states that a new one has no rounds", async () => {
    const { plan, notice, readings } = await request();
    expect({ plan, notice }).toEqual({ plan: "Pro", notice: NOTICES.en });
    expect(readings.map((one) => Object.keys(one))).toEqual([FIELDS, FIELDS, FIELDS, FIELDS]);
    for (const { text, facts, based_on_rounds, lang } of readings) {
      expect({ text, facts, based_on_rounds, lang }).toEqual({
        text: "No round of this table is known yet.",
        facts: [],
        based_on_rounds: 0,
        lang: "en",
      });
    }
  });

  it("states that a few rounds are too few", async () => {
    await playRead([150]);
    expect(await becomes(/^Only 1 round of this table is known/)).toMatchObject({ facts: [], based_on_rounds: 1 });
  });

  it("states the listed facts in three languages, under a notice in the same one, and promises nothing", async () => {
    const games = generatedRounds(118).map(({ hundredths }) => (hundredths < 1000 ? hundredths : 999));
    await playRead([...games, 1200, 150, 150, 250]);
    const english = await becomes(/^No pink for 3 rounds \(on average it occurs every/);
    expect(english.based_on_rounds).toBe(123);
    expect(english.facts.map((fact) => Object.keys(fact))).toEqual(english.facts.map(() => FACT_FIELDS));
    expect(english.facts.find(({ name }) => name === "gap:pink")).toMatchObject({ value: 3, rounds: 123 });
    expect(english.text).toContain("the past has not changed the odds");
    expect(english.text).toContain("we require 80×"); // of four tables
    expect((await crash("es")).text).toMatch(/^Sin pink desde hace 3 rondas/);
    expect((await crash("pt")).text).toMatch(/^Sem pink há 3 rodadas/);
    for (const lang of ["en", "es", "pt"] as const) {
      const { notice, readings } = await request(`?lang=${lang}`);
      expect(notice).toBe(NOTICES[lang]);
      for (const { lang: own, text, facts } of readings) {
        expect(own).toBe(lang);
        expect(promisesIn(text)).toEqual([]);
        if (facts.length > 0) expect(facts).toEqual(english.facts);
      }
    }
  });

  it("states that a wait is unknown after missing rounds", async () => {
    await playRead([{ hundredths: 150, afterGap: true }]);
    const { facts } = await becomes(/^It is unknown how long ago pink last occurred/);
    expect(facts.find(({ name }) => name === "gap:pink")?.value).toBeNull();
  });

  it("has no facts for a silent table, nor for one whose house is paused", async () => {
    await rewrite(world, "alpha/crash/global", { last_polled_round_at: secondsAgo(301) });
    expect((await becomes(/^No round of this table was received lately/)).facts).toEqual([]);
    await playRead([150]);
    await becomes(/^It is unknown how long ago pink/);
    await world.sql`update houses set paused_at = now(), paused_by = 'ann', pause_reason = 'test' where id = 'alpha'`;
    await eventually(async () => {
      await announce(world);
      return expect(await crash()).toMatchObject({ text: expect.stringMatching(/^This table is paused/), facts: [] });
    });
    await world.sql`update houses set paused_at = null, paused_by = null, pause_reason = null`;
    await eventually(async () => {
      await announce(world);
      return expect((await crash()).facts).not.toEqual([]);
    });
  });

  it("has no facts once the newest reading is as old as silence, even if rounds still arrive", async () => {
    const stale = { seq: "1", rounds: 60, made_at: secondsAgo(301).replace("Z", "0000Z"), facts: [] };
    await play(world, "alpha/dice/eu", [150]);
    await world.sql`
      update published_readings
      set reading = ${world.sql.json(stale)}, published_at = clock_timestamp()
      where table_id = ${await tableIdOf(world, "alpha/dice/eu")}`;
    await rewrite(world, "alpha/dice/eu", { last_polled_round_at: secondsAgo(1) });
    await eventually(async () => {
      const [reading] = (await request("?house=alpha&game=dice")).readings;
      return expect(reading).toMatchObject({ text: expect.stringMatching(/^No round of this table was received/) });
    });
  });

  it("does not send again what a caller has, in each language by itself", async () => {
    const etagOf = async (lang: string) => (await world.get(`/api/v1/readings?lang=${lang}`)).headers.get("etag") ?? "";
    const english = await etagOf("en");
    const headers = { "If-None-Match": english };
    expect((await world.get("/api/v1/readings?lang=en", { headers })).status).toBe(304);
    expect((await world.get("/api/v1/readings?lang=es", { headers })).status).toBe(200);
  });

  it("counts against the quota as readings", async () => {
    const used = async () => {
      const usage = (await (await world.get("/api/v1/usage")).json()) as {
        endpoints: { endpoint: string; requests: number }[];
      };
      return usage.endpoints.find(({ endpoint }) => endpoint === "readings")?.requests ?? 0;
    };
    const before = await used();
    await request();
    expect(await used()).toBe(before + 1);
  });
});

describe("a wrong request for readings", () => {
  it.each(["fr", "EN", "", "en,es", "constructor"])("is refused for the language %j", async (lang) => {
    const refusal = await world.refused(`/api/v1/readings?lang=${lang}`);
    expect(refusal).toMatchObject({ status: 400, code: "invalid_parameter", details: { parameter: "lang" } });
    expect(refusal.message).toContain("expected one of en, es, pt");
  });

  it("is refused for a parameter that there is not, and for a language given twice", async () => {
    const unknown = await world.refused("/api/v1/readings?language=en");
    expect(unknown).toMatchObject({ status: 400, code: "unknown_parameter" });
    expect(unknown.details).toEqual({ unknown: ["language"], allowed: ["house", "game", "market", "lang"] });
    expect(await world.refused("/api/v1/readings?lang=en&lang=es")).toMatchObject({ code: "invalid_parameter" });
  });

  it("is refused without a key, for a table that is not there, and for one outside the plan, of which nothing is shown", async () => {
    expect(await world.refused("/api/v1/readings", { headers: { "X-Api-Key": "" } })).toMatchObject({ status: 401 });
    expect(await world.refused("/api/v1/readings?house=nowhere")).toMatchObject({ code: "table_not_found" });
    await setPlan(world.sql, "Starter", { houses: ["beta"] });
    const key = await makeKey(world.sql, "narrow@example.com", "Starter");
    expect((await request("", key)).readings.map(({ house }) => house)).toEqual(["beta"]);
    expect(await world.refused("/api/v1/readings?house=alpha", { headers: { "X-Api-Key": key } })).toMatchObject({
      status: 403,
      code: "table_not_in_plan",
    });
  });

  it("is refused for any method but reading", async () => {
    expect(await world.refused("/api/v1/readings", { method: "POST" })).toMatchObject({ status: 405 });
  });
});
