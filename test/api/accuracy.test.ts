import { mean, sampleStandardDeviation } from "simple-statistics";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { setPlan } from "../../src/callers/plan-store.ts";
import { addFacts, type HourDeltas } from "../../src/forecasts/accuracy/add-facts.ts";
import { KEY } from "../../src/forecasts/accuracy/keys.ts";
import { findMark } from "../../src/forecasts/accuracy/mark-store.ts";
import { eventually } from "../support/eventually.ts";
import { writeSums } from "../support/sums.ts";
import { allowSlowness, announce, NO_SET, play, score, tableIdOf } from "./play.ts";
import { makeKey, makeWorld, type World } from "./world.ts";

const NOTICE = "Information only. Rounds come from the house's random generator; no outcome is guaranteed. 18+.";
const CRASH = "alpha/crash/global";
const DICE = "alpha/dice/eu";
const DAY_MS = 86_400_000;

const at = z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{2}:00:00\.0000000Z$/);
const share = z.number().min(0).max(1).nullable();
const figure = z.number().nullable();
const reference = (name: string) =>
  z.strictObject({ name: z.literal(name), log_loss: figure, brier: figure, skill: figure });
const interval = z.tuple([z.number(), z.number()]).nullable();
/** Fields in the order in which they are sent. */
const row = z.strictObject({
  feature: z.string(),
  model: z.string(),
  house: z.string(),
  game: z.string().nullable(),
  market: z.string().nullable(),
  period: z.enum(["24h", "7d", "30d", "90d", "all"]),
  period_start: at,
  period_end: at,
  as_of: z.string().nullable(),
  as_of_round_id: z.string().nullable(),
  sample_size: z.int(),
  hits: z.int(),
  hit_rate: share,
  interval_95: interval,
  expected_rate: share,
  baseline_rate: share,
  coverage: share,
  not_issued: z.int(),
  late_rounds: z.int().nullable(),
  voids: z.strictObject({
    gap: z.int(),
    late: z.int(),
    conflict: z.int(),
    impossible: z.int(),
    operator: z.int(),
  }),
  rate_bounds: interval,
  withheld: z.string().nullable(),
  pending: z.int(),
  sealed: share,
  z: figure,
  e_value: figure,
  log_loss: figure,
  baseline_log_loss: figure,
  brier: figure,
  baseline_brier: figure,
  rps: figure,
  baseline_rps: figure,
  skill: figure,
  skill_interval_95: interval,
  calibration_error: share,
  calibration_error_floor: share,
  reliability: z.array(
    z.strictObject({ p_from: z.number(), p_to: z.number(), n: z.int(), mean_p: z.number(), hits: z.int() }),
  ),
  references: z.tuple([reference("last_20"), reference("last_100"), reference("due")]),
});
const body = z.strictObject({
  ok: z.literal(true),
  plan: z.string(),
  notice: z.literal(NOTICE),
  accuracy: z.array(row),
});
type Row = z.infer<typeof row>;

let world: World;

beforeAll(async () => {
  world = await makeWorld();
  await allowSlowness(world);
});
afterAll(() => world.close());

async function accuracy(query = "", options: { of?: World; key?: string } = {}): Promise<Row[]> {
  const { of = world, key = world.key } = options;
  const response = await of.get(`/api/v1/accuracy${query}`, { headers: { "X-Api-Key": key } });
  expect(response.status).toBe(200);
  return body.parse(await response.json()).accuracy;
}

const P = [515_000, 384_000, 101_000];
const BASE = [505_000, 396_000, 99_000];

/** What became of forecasts of p .515, .384, .101 over a baseline of .505, .396, .099, or of windows of .811376 over .81. */
interface Given {
  /** The colors that came, or of a window 1 or 0. */
  outcomes?: number[];
  /** Reasons: 1 gap, 2 late. */
  voids?: number[];
  pending?: number;
  rounds?: number;
  lateRounds?: number;
  notIssued?: number;
  /** A feature code; default next_color. */
  feature?: number;
}

/** Writes the sums of a feature over a period as if they were of 21 November 2026. */
async function publish(table: string, given: Given, period = "30d"): Promise<void> {
  const { outcomes = [], voids = [], pending = 0, feature = 0, rounds = 0, lateRounds = 0, notIssued = 0 } = given;
  const ended = [
    ...outcomes.map((outcome) => ({ reason: 0, outcome })),
    ...voids.map((reason) => ({ reason, outcome: null })),
  ];
  const sets = Array.from({ length: ended.length + pending }, (_, place) => ({
    cutoffSeq: BigInt(place + 1),
    cutoffOrdinal: BigInt(place + 1),
    model: "k7@1-4c321756cd3f",
    hour: 0,
    features: feature === 0 ? [0] : [0, feature],
    horizons: feature === 0 ? [1] : [1, 7],
    pPpm: feature === 0 ? P : [...P, 811_376],
    basePpm: feature === 0 ? BASE : [...BASE, 810_000],
    referencePpm: Array.from({ length: feature === 0 ? 9 : 12 }, () => 333_333),
    ends: Array.from({ length: 9 }, () => 0n),
    isSealed: false,
  }));
  const scores = ended.map((one, place) => ({
    settledSeq: BigInt(place + 2),
    settlements: [{ cutoffSeq: BigInt(place + 1), feature, ...one }],
  }));
  const deltas: HourDeltas = new Map();
  addFacts(deltas, { sets, scores, revisions: [], rounds: [], earlierSets: [] });
  const sums = [...deltas.values()].find((one) => one.feature === feature)?.sums ?? new Map<number, bigint>();
  sums.set(KEY.rounds, BigInt(rounds));
  sums.set(KEY.lateRounds, BigInt(lateRounds));
  sums.set(KEY.notIssued, BigInt(notIssued));
  const id = await tableIdOf(world, table);
  await writeSums(world.sql, id, "2026-11-21T12:00:00Z", { feature, period, sums });
  await announce(world);
}

describe("/accuracy", () => {
  it("is an empty list before anything was measured", async () => {
    expect(await (await world.get("/api/v1/accuracy")).text()).toBe(
      JSON.stringify({ ok: true, plan: "Pro", notice: NOTICE, accuracy: [] }),
    );
    expect(await accuracy("?scope=house")).toEqual([]);
  });

  it("gives what was forecast, scored and published, as anyone can compute it from forecasts and rounds", async () => {
    for (const hundredths of [150, 230, 1150, 120, 340, 101, 199, 200]) {
      await play(world, CRASH, [hundredths]);
    }
    await play(world, CRASH, [150], NO_SET);
    await play(world, CRASH, [170]);
    await score(world, "alpha");
    const [shown] = await eventually(async () => {
      const rows = await accuracy("?period=24h");
      return rows.length > 0 && rows;
    });
    const facts = await world.sql<{ p: number[]; base: number[]; color: number }[]>`
      select f.p_ppm as p, f.base_ppm as base, r.color
      from forecasts f
      join rounds r on r.table_id = f.table_id and r.seq = f.cutoff_seq + 1
      where f.feature = 'next_color'
      order by f.seq`;
    const scored = facts.map(({ p, base, color }) => ({
      p: p.map((ppm) => ppm / 1e6),
      base: base.map((ppm) => ppm / 1e6),
      outcome: color,
    }));
    const top = ({ p }: { p: number[] }) => p.indexOf(Math.max(...p));
    const hits = scored.filter((one) => top(one) === one.outcome).length;
    expect(scored).toHaveLength(7);
    expect(shown).toMatchObject({
      feature: "next_color",
      model: "k7@1-4c321756cd3f",
      house: "alpha",
      game: "crash",
      market: "global",
      period: "24h",
      sample_size: 7,
      hits,
      hit_rate: hits / 7,
      // eight rounds followed the first forecast, and there was none for the last of them
      not_issued: 1,
      coverage: 7 / 8,
      voids: { gap: 0, late: 0, conflict: 0, impossible: 0, operator: 0 },
      pending: 1,
    });
    expect(shown?.expected_rate).toBeCloseTo(mean(scored.map((one) => one.p[top(one)] ?? 0)), 12);
    expect(shown?.baseline_rate).toBeCloseTo(mean(scored.map((one) => one.base[top(one)] ?? 0)), 12);
    const logLoss = (which: "p" | "base") => mean(scored.map((one) => -Math.log(one[which][one.outcome] ?? 0)));
    expect(shown?.log_loss).toBeCloseTo(logLoss("p"), 5);
    expect(shown?.baseline_log_loss).toBeCloseTo(logLoss("base"), 5);
    const shares = [0, 1, 2].map((k) => scored.filter((one) => one.outcome === k).length / 7).filter((one) => one > 0);
    const best = shares.reduce((sum, one) => sum - one * Math.log(one), 0);
    expect(shown?.skill).toBeCloseTo(1 - logLoss("p") / best, 5);
    const brier = (which: "p" | "base") =>
      mean(scored.map((one) => one[which].reduce((sum, p, k) => sum + (p - (k === one.outcome ? 1 : 0)) ** 2, 0)));
    expect(shown?.brier).toBeCloseTo(brier("p"), 11);
    expect(shown?.baseline_brier).toBeCloseTo(brier("base"), 11);
    // so early both windows hold every round there was: (c + 1) / (n + 3), and two before the first forecast
    const colors = await world.sql<{ color: number }[]>`select color from rounds order by seq`;
    const seen = colors.map(({ color }) => color);
    const count = (rounds: number[], k: number) => rounds.filter((color) => color === k).length;
    const losses = scored.map(({ outcome }, index) => {
      const before = seen.slice(0, 2 + index);
      return -Math.log((count(before, outcome) + 1) / (before.length + 3));
    });
    const [last20, last100] = shown?.references ?? [];
    expect(last20?.log_loss).toBeCloseTo(mean(losses), 5);
    expect(last100).toEqual({ ...last20, name: "last_100" });
    expect(last20?.skill).toBeCloseTo(1 - mean(losses) / best, 4);
  });

  it("has these fields in this order", async () => {
    const response = await world.get("/api/v1/accuracy?period=24h");
    expect(response.headers.get("x-data-age")).toMatch(/^\d+$/);
    const text = await response.text();
    expect(text.startsWith(`{"ok":true,"plan":"Pro","notice":${JSON.stringify(NOTICE)},"accuracy":[{"feature":`)).toBe(
      true,
    );
    const { accuracy: rows } = z
      .object({ accuracy: z.array(z.record(z.string(), z.unknown())) })
      .parse(JSON.parse(text));
    expect(new Set(rows.map((one) => Object.keys(one).join(" ")))).toEqual(new Set([Object.keys(row.shape).join(" ")]));
    expect(Object.keys(rows[0]?.["voids"] ?? {})).toEqual(["gap", "late", "conflict", "impossible", "operator"]);
  });

  it.each([
    ["24h", DAY_MS],
    ["7d", 7 * DAY_MS],
    ["30d", 30 * DAY_MS],
    ["90d", 90 * DAY_MS],
  ])("%s spans that long, up to the end of the hour or day that is not over yet", async (period, lengthMs) => {
    const [shown] = await accuracy(`?period=${period}&house=alpha`);
    const [start, end] = [Date.parse(shown?.period_start ?? ""), Date.parse(shown?.period_end ?? "")];
    expect([shown?.period, end - start]).toEqual([period, lengthMs]);
    // the hour of the last score, since the next one may have begun
    const mark = await findMark(world.sql, await tableIdOf(world, CRASH));
    const unit = period === "24h" ? DAY_MS / 24 : DAY_MS;
    expect(end).toBe(Math.floor(((mark?.hour ?? 0) * DAY_MS) / 24 / unit) * unit + unit);
  });

  it("is of thirty days and of tables unless something else is asked for", async () => {
    expect(await accuracy()).toEqual(await accuracy("?period=30d&scope=table"));
    expect(await accuracy("?feature=next_color")).toMatchObject([
      { period: "30d", house: "alpha", game: "crash", market: "global" },
    ]);
    expect(await accuracy("?period=all&feature=next_color")).toMatchObject([{ period: "all", sample_size: 7 }]);
  });

  it("changes when what is published changes, and with it the ETag", async () => {
    const path = "/api/v1/accuracy?period=24h&house=alpha";
    const etag = (await world.get(path)).headers.get("etag") ?? "";
    expect((await world.get(path, { headers: { "If-None-Match": etag } })).status).toBe(304);
    await play(world, CRASH, [140]);
    await score(world, "alpha");
    const nextColors = "?period=24h&feature=next_color";
    await eventually(async () => expect(await accuracy(nextColors)).toMatchObject([{ sample_size: 8 }]));
    const changed = await world.get(path, { headers: { "If-None-Match": etag } });
    expect(changed.status).toBe(200);
    expect(changed.headers.get("etag")).not.toBe(etag);
  });

  it("of a table with a damaged row stays as it was last read, and neither it nor a restart stops the rest", async () => {
    const before = await accuracy("?period=24h");
    const id = await tableIdOf(world, CRASH);
    const damage = (change: string) =>
      world.sql.unsafe(`update accuracy_hours set sums = ${change} where table_id = ${id};
      update accuracy_marks set version = version + 1 where table_id = ${id}`);
    await damage("sums || '\\xff'");
    await play(world, CRASH, [7700]);
    await eventually(async () =>
      expect(await (await world.get("/api/v1/rounds?house=alpha")).text()).toContain('"multiplier":77.00'),
    );
    const reports = () => world.lines.filter((line) => line.includes(`the accuracy of table ${id} is damaged`));
    await eventually(() => reports().length > 0);
    expect(await accuracy("?period=24h")).toEqual(before);
    const restarted = await makeWorld({}, { on: world });
    try {
      expect(await accuracy("?period=24h", { of: restarted })).toEqual([]);
      await damage("substr(sums, 1, length(sums) - 1)");
      await announce(world);
      await eventually(async () => expect(await accuracy("?period=24h", { of: restarted })).toEqual(before));
    } finally {
      await restarted.close();
    }
    expect(reports()).toHaveLength(1);
  });
});

describe("figures", () => {
  it("are those of a calculator, to at least five decimals", async () => {
    const given = { outcomes: [0, 0, 1, 2], voids: [], pending: 1, rounds: 40, notIssued: 3 };
    await publish("gamma/rocket/one", given);
    const [shown] = await eventually(async () => {
      const rows = await accuracy("?house=gamma");
      return rows.length > 0 && rows;
    });
    const rounded = Object.fromEntries(
      Object.entries(shown ?? {}).map(([name, value]) => [name, typeof value === "number" ? +value.toFixed(5) : value]),
    );
    expect(rounded).toMatchObject({
      period_start: "2026-10-23T00:00:00.0000000Z",
      period_end: "2026-11-22T00:00:00.0000000Z",
      sample_size: 4,
      hits: 2,
      hit_rate: 0.5,
      expected_rate: 0.515,
      baseline_rate: 0.505,
      coverage: 0.925,
      not_issued: 3,
      voids: { gap: 0, late: 0, conflict: 0, impossible: 0, operator: 0 },
      pending: 1,
      // (2 − 4 × .515) ÷ √(4 × .515 × .485)
      z: -0.06003,
      // (2 × .663588 + .957113 + 2.292635) ÷ 4
      log_loss: 1.14423,
      // (2 × .683197 + .926341 + 2.312635) ÷ 4
      baseline_log_loss: 1.15134,
      // (2 × (.485² + .384² + .101²) + .515² + .616² + .101² + .515² + .384² + .899²) ÷ 4
      brier: 0.66538,
      baseline_brier: 0.66914,
      // (2 × (.485² + .101²) + .515² + .101² + .515² + .899²) ÷ 4
      rps: 0.45993,
      baseline_rps: 0.46033,
      // the best constant is the shares that came: 1 − 1.144231 ÷ 1.039721
      skill: -0.10052,
    });
    // Wilson's interval of 2 in 4
    expect(shown?.interval_95?.map((end) => +end.toFixed(5))).toEqual([0.15004, 0.84996]);
    expect(shown?.rate_bounds).toEqual([0.5, 0.5]);
    // two hits and two misses of .515, at each stake
    const won = [-0.5, -0.25, -0.1, 0.1, 0.25, 0.5].map((bet) => (1 + bet * 0.485) ** 2 * (1 - bet * 0.515) ** 2);
    expect(shown?.e_value).toBeCloseTo(won.reduce((sum, e) => sum + e, 0) / 6, 5);
    // (|2 − 4 × .515| + |1 − 4 × .384| + |1 − 4 × .101|) ÷ 12
    expect(shown?.calibration_error).toBeCloseTo(1.192 / 12, 5);
    const spread = [0.515, 0.384, 0.101].map((p) => Math.sqrt((2 / Math.PI) * 4 * p * (1 - p)));
    expect(shown?.calibration_error_floor).toBeCloseTo(spread.reduce((sum, sd) => sum + sd, 0) / 12, 5);
    expect(shown?.reliability.map((bin) => ({ ...bin, mean_p: +bin.mean_p.toFixed(6) }))).toEqual([
      { p_from: 0.1, p_to: 0.2, n: 4, mean_p: 0.101, hits: 1 },
      { p_from: 0.3, p_to: 0.4, n: 4, mean_p: 0.384, hits: 1 },
      { p_from: 0.5, p_to: 0.6, n: 4, mean_p: 0.515, hits: 2 },
    ]);
    const gains = [0, 0, 1, 2].map((k) => Math.log((P[k] ?? 0) / 1e6 / [0.5, 0.25, 0.25][k]!));
    const half = (1.96 * sampleStandardDeviation(gains)) / Math.sqrt(4);
    const [low = 0, high = 0] = shown?.skill_interval_95 ?? [];
    expect(low).toBeCloseTo((mean(gains) - half) / 1.039721, 4);
    expect(high).toBeCloseTo((mean(gains) + half) / 1.039721, 4);
  });

  it("are null if nothing was scored yet, and counts are counts", async () => {
    await publish("beta/crash/eu", { pending: 1 });
    await eventually(async () => (await accuracy("?house=beta")).length === 1);
    const [shown] = await accuracy("?house=beta");
    const nulls = Object.entries(shown ?? {}).filter(([, value]) => value === null);
    expect(nulls.map(([name]) => name).join(" ")).toBe(
      "as_of as_of_round_id hit_rate interval_95 expected_rate baseline_rate coverage rate_bounds withheld sealed z e_value log_loss baseline_log_loss " +
        "brier baseline_brier rps baseline_rps skill skill_interval_95 calibration_error calibration_error_floor",
    );
    expect(shown).toMatchObject({ sample_size: 0, hits: 0, not_issued: 0, pending: 1 });
  });
});

describe("the accuracy of a house", () => {
  it("is that of its tables together: samples add up, and rates are weighted by them", async () => {
    await publish(CRASH, { outcomes: [0], rounds: 1 }, "7d");
    await publish(DICE, { outcomes: [0, 1, 1, 2, 0], rounds: 9, notIssued: 4 }, "7d");
    const house = await eventually(async () => {
      const rows = await accuracy("?scope=house&period=7d&house=alpha&feature=next_color");
      return rows[0]?.sample_size === 6 && rows;
    });
    expect(house).toHaveLength(1);
    expect(house[0]).toMatchObject({
      house: "alpha",
      game: null,
      market: null,
      hits: 3,
      hit_rate: 0.5,
      expected_rate: 0.515,
      coverage: 0.6,
      not_issued: 4,
    });
    const tables = await accuracy("?period=7d&house=alpha&feature=next_color");
    expect(tables.map(({ sample_size: n }) => n)).toEqual([1, 5]);
    const weighted = (name: "log_loss" | "brier" | "rps") =>
      tables.reduce((sum, one) => sum + (one[name] ?? 0) * one.sample_size, 0) / 6;
    for (const name of ["log_loss", "brier", "rps"] as const) expect(house[0]?.[name]).toBeCloseTo(weighted(name), 12);
  });

  it("is merged feature by feature, next color first, and of other houses there is another row", async () => {
    await publish(DICE, { outcomes: [1], feature: 8 }, "7d");
    await publish("beta/crash/eu", { outcomes: [0, 2] }, "7d");
    await eventually(async () =>
      expect(
        (await accuracy("?scope=house&period=7d"))
          .filter(({ feature }) => ["next_color", "window:pink:80"].includes(feature))
          .map(({ house, feature, sample_size: n }) => [house, feature, n]),
      ).toEqual([
        ["alpha", "next_color", 6],
        ["alpha", "window:pink:80", 1],
        ["beta", "next_color", 2],
        ["gamma", "next_color", 0], // measured in a longer period only
      ]),
    );
    const [shown] = await accuracy("?feature=window:pink:80&period=7d");
    expect(shown).toMatchObject({ hit_rate: 1, expected_rate: 0.811376, baseline_rate: 0.81, coverage: 1 });
    expect(shown).toMatchObject({ not_issued: 0 });
  });

  it("follows its tables, and is of those alone that were chosen", async () => {
    await publish(CRASH, { outcomes: [0, 0, 0] }, "7d");
    const sizes = async (query: string) =>
      (await accuracy(`?scope=house&period=7d&feature=next_color&house=alpha${query}`)).map(({ sample_size: n }) => n);
    await eventually(async () => expect(await sizes("")).toEqual([8]));
    expect(await sizes("&game=dice")).toEqual([5]);
    expect(await sizes("&game=crash")).toEqual([3]);
    expect(await sizes("")).toEqual([8]);
  });

  it("is the same in a process that was started later, in whatever order its parts were read", async () => {
    const features = async () =>
      (await accuracy("?period=7d&house=gamma")).filter((one) => one.sample_size > 0).map(({ feature }) => feature);
    await publish("gamma/rocket/one", { outcomes: [1], feature: 8 }, "7d");
    await eventually(async () => expect(await features()).toEqual(["window:pink:80"]));
    await publish("gamma/rocket/one", { outcomes: [1] }, "7d");
    await eventually(async () => expect(await features()).toEqual(["next_color", "window:pink:80"]));
    const later = await makeWorld({}, { on: world });
    try {
      for (const query of ["?scope=house&period=7d", "?period=7d", "", "?period=90d"]) {
        const [old, young] = await Promise.all([world, later].map((one) => one.get(`/api/v1/accuracy${query}`)));
        expect(await young?.text()).toBe(await old?.text());
        expect(young?.headers.get("etag")).toBe(old?.headers.get("etag"));
      }
    } finally {
      await later.close();
    }
  });
});

describe("what is asked for", () => {
  it("may be one feature; one of which nothing was measured is an empty list", async () => {
    expect(await accuracy("?feature=next_color&house=gamma")).toHaveLength(1);
    expect(await accuracy("?feature=window:gold:50")).toEqual([]);
    expect(await accuracy("?feature=window:no-color_of-ours:90&scope=house")).toEqual([]);
    expect(await accuracy("?feature=next_color&house=gamma&period=24h")).toMatchObject([{ sample_size: 0 }]);
  });

  it.each([
    "feature=",
    "feature=color",
    "feature=NEXT_COLOR",
    "feature=next_color,window:pink:80",
    "feature=window",
    "feature=window:pink",
    "feature=window:pink:81",
    "feature=window:Pink:80",
    "feature=window:pink:80:1",
    "feature=last_20",
    "period=",
    "period=1d",
    "period=30D",
    "period=24h,7d",
    "scope=tables",
    "scope=",
    "feature=next_color&feature=next_color",
  ])("%s is 400", async (query) => {
    const refusal = await world.refused(`/api/v1/accuracy?${query}`);
    expect(refusal).toMatchObject({ status: 400, code: "invalid_parameter" });
    expect(refusal.details).toEqual({ parameter: query.slice(0, query.indexOf("=")) });
  });

  it("must be known, exist and be in the plan", async () => {
    const unknown = await world.refused("/api/v1/accuracy?model=k7@1");
    expect(unknown).toMatchObject({ status: 400, code: "unknown_parameter" });
    expect(unknown.details).toMatchObject({ allowed: ["house", "game", "market", "feature", "period", "scope"] });
    expect(await world.refused("/api/v1/accuracy?market=nowhere")).toMatchObject({ status: 404 });
    await setPlan(world.sql, "Starter", { houses: ["beta"] });
    const key = await makeKey(world.sql, "starter@example.com", "Starter");
    const refusal = await world.refused("/api/v1/accuracy?house=gamma", { headers: { "X-Api-Key": key } });
    expect(refusal).toMatchObject({ status: 403, code: "table_not_in_plan" });
    expect((await accuracy("?period=7d&scope=house", { key })).map(({ house }) => house)).toEqual(["beta"]);
  });
});

describe("what is withheld", () => {
  it("is also the skill of the windows of a table with more than 5 % late rounds, by table and by house", async () => {
    await publish(CRASH, { outcomes: Array.from({ length: 30 }, () => 1), feature: 8 }, "90d");
    const colors = Array.from({ length: 300 }, (_, place) => place % 3);
    await publish(CRASH, { outcomes: colors, rounds: 400, lateRounds: 100, notIssued: 100 }, "90d");
    const query = "?period=90d&house=alpha&game=crash&feature=window:pink:80";
    const reason = "more than 5 % of the rounds are void or late";
    const nothing = {
      withheld: reason,
      interval_95: null,
      skill: null,
      skill_interval_95: null,
      z: null,
      e_value: null,
    };
    await eventually(async () =>
      expect(await accuracy(query)).toMatchObject([{ sample_size: 30, coverage: 1, late_rounds: null, ...nothing }]),
    );
    expect(await accuracy(`${query}&scope=house`)).toMatchObject([{ sample_size: 30, ...nothing }]);
    await publish(CRASH, { outcomes: colors, rounds: 310, lateRounds: 10, notIssued: 10 }, "90d");
    await eventually(async () => expect(await accuracy(query)).toMatchObject([{ sample_size: 30, withheld: null }]));
    expect((await accuracy(query))[0]?.interval_95).not.toBeNull();
  });
});
