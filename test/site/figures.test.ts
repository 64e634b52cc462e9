import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { skillPlot } from "../../src/charts/skill.ts";
import { createDrawer } from "../../src/charts/draw.ts";
import { openCheckpoint, parseVerifierKey } from "../../src/signed-note.ts";
import { publishLog } from "../../src/record/log/publish-log.ts";
import { leafHash, rootOf } from "../../src/record/log/tree.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { accuracyPages } from "../../src/site/accuracy/accuracy.ts";
import { drawing } from "../../src/site/accuracy/drawings.ts";
import { figuresOf } from "../../src/forecasts/accuracy/figures/figures.ts";
import { emptySums, type Sums } from "../../src/forecasts/accuracy/figures/sums.ts";
import { loadMemory, type Memory } from "../../src/published/memory.ts";
import { homePage } from "../../src/site/home/home.ts";
import { recordOf } from "../../src/site/home/record.ts";
import { tablePage } from "../../src/site/houses/table.ts";
import { readTableFacts } from "../../src/site/houses/table-store.ts";
import { sendPage, type SitePage } from "../../src/site/send-page.ts";
import { readBriefly } from "../../src/site/site-store.ts";
import { skillSentence } from "../../src/site/accuracy/skill.ts";
import { loader } from "../../src/site/loader.ts";
import { workStates } from "../../src/site/status/status.ts";
import { allowSlowness, play, score } from "../api/play.ts";
import { makeWorld, type World } from "../api/world.ts";
import { eventually } from "../support/eventually.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";

const CRASH = "alpha/crash/global";
let world: World;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "log-"));
  world = await makeWorld();
  await allowSlowness(world);
  await play(world, CRASH, [150]);
  for (const hundredths of [230, 1150, 120, 340, 101, 199, 200, 130, 410, 2200, 170]) {
    await play(world, CRASH, [hundredths]);
  }
  await score(world, "alpha");
  await eventually(async () => (await (await world.get("/api/v1/accuracy")).text()).includes('"next_color"'));
});
afterAll(async () => {
  await world.close();
  await rm(folder, { recursive: true });
});

const ask = async (path: string, of = world) => {
  const response = await fetch(of.api.url + path);
  const page = await response.text();
  expect(Buffer.byteLength(page), path).toBeLessThan(100_000);
  const text = page.replaceAll(/\s+/g, " ").replaceAll(/ ?(<[^>]*>) ?/g, "$1");
  return { status: response.status, text };
};
/** One decimal: ten forecasts allow no more. */
const percent = (value: number) => `${(value * 100).toFixed(1).replace("-", "−")} %`;
const row = z.object({
  sample_size: z.int(),
  hits: z.int(),
  hit_rate: z.number(),
  interval_95: z.tuple([z.number(), z.number()]),
  expected_rate: z.number(),
  baseline_rate: z.number(),
  skill: z.number(),
  skill_interval_95: z.tuple([z.number(), z.number()]),
  references: z.array(z.object({ name: z.string(), skill: z.number() })),
});

async function fromApi(query: string) {
  const answer: unknown = await (await world.get(`/api/v1/accuracy${query}`)).json();
  const [found] = z.object({ accuracy: z.array(row) }).parse(answer).accuracy;
  if (found === undefined) throw new Error(`expected accuracy of ${query}`);
  return found;
}

/** The text of a page, whitespace as in `ask`. */
async function render(page: SitePage): Promise<string> {
  const server = createServer((_, response) => sendPage(response, page, { url: "/", site: "" })).listen(0);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const text = await (await fetch(`http://127.0.0.1:${port}`)).text();
  server.close();
  return text.replaceAll(/\s+/g, " ").replaceAll(/ ?(<[^>]*>) ?/g, "$1");
}

/** A copy of what the API holds, each table of which has more voids than scores. */
async function loadWithheld(): Promise<Memory> {
  const options = { bufferRounds: 20, liveWindowSeconds: 60 };
  const memory = await loadMemory(world.sql, options, pino({ level: "silent" }));
  for (const table of memory.tables.tables) {
    table.accuracy = table.accuracy.map((one) => ({ ...one, sums: { ...one.sums, voidGap: one.sums.n + 1n } }));
  }
  return memory;
}

const NO_PLOTS = { figures: [], missing: "" };

async function tablePageOf(memory: Memory, drawn: Parameters<typeof tablePage>[0]["drawn"] = NO_PLOTS) {
  const [table] = memory.tables.tables;
  if (table === undefined) throw new Error("expected a table");
  const facts = await readBriefly(world.sql, (tx) => readTableFacts(tx, table.id, { rounds: 10, thresholds: [] }));
  return tablePage({ memory, table, facts, past: null, reading: null, incidents: [], drawn });
}

function homePageOf(memory: Memory, drawn: Parameters<typeof homePage>[0]["drawn"] = NO_PLOTS): SitePage {
  const record = recordOf(memory.tables.tables);
  return homePage({ memory, record, site: "", houses: null, plans: null, featured: null, drawn });
}

describe("/accuracy", () => {
  it("shows of every table the figures of the API, with sample, interval, baseline and skill", async () => {
    const { text } = await ask("/accuracy");
    const facts = await fromApi("?feature=next_color");
    expect(facts.sample_size).toBeGreaterThan(9);
    const [low, high] = facts.interval_95;
    expect(text).toContain(
      `<td class="num nowrap" data-name="Hit rate">${percent(facts.hit_rate)}<br><small>${percent(low)} to ${percent(high)}</small></td><td class="num nowrap" data-name="Stated">${percent(facts.expected_rate)}</td><td class="num nowrap" data-name="Baseline">${percent(facts.baseline_rate)}</td><td class="num nowrap" data-name="Skill">${percent(facts.skill)}<br>`,
    );
    expect(text).toContain("<br><small>too few to say</small></td>");
    expect(text).toContain("<figcaption>Skill against the best constant in hindsight</figcaption>");
    // the first plot of a process may take longer than a page waits
    await eventually(async () =>
      expect((await ask("/accuracy")).text).toContain(
        '<svg role="img" aria-label="Skill against the best constant in hindsight"',
      ),
    );
  });

  it("draws of one table its rates over time, what was stated against what was observed, and popular rules", async () => {
    const text = await eventually(async () => {
      const shown = await ask(`/accuracy?of=${encodeURIComponent(CRASH)}`);
      return shown.text.includes('<svg role="img"') && shown.text;
    });
    const facts = await fromApi("?feature=next_color");
    expect(text).toContain("<h1>Measured accuracy: alpha/crash/global</h1>");
    const titles = [...text.matchAll(/<figcaption>([^<]*)<\/figcaption>/g)].map(([, title]) => title);
    expect(titles).toEqual(["Stated and observed probability", "Skill next to popular rules", "Hit rate by day"]);
    expect(text.match(/<svg role="img"/g)).toHaveLength(3);
    expect(text).toContain(`>ours, ${facts.sample_size} scored: too few</text>`);
    expect(text).toContain(`<strong>Skill ${percent(facts.skill)}</strong>`);
    expect(text).toContain(`${facts.sample_size} scored forecasts are too few for a verdict on skill`);
    for (const { name, skill } of facts.references) {
      const rule = { last_20: "last 20 rounds", last_100: "last 100 rounds", due: "longest absent" }[name];
      expect(text).toContain(
        // a rule has no interval, so none is shown
        `<th scope="row" class="nowrap">${rule}</th><td class="num nowrap">${facts.sample_size}</td><td class="num nowrap">${percent(skill)}</td><td class="num nowrap">–</td>`,
      );
    }
    expect(text).toContain(`<dt>Scored forecasts</dt><dd>${facts.sample_size}</dd>`);
  });

  it("states where the rates over time begin if those of the whole period are too many rows", async () => {
    const log = pino({ level: "silent" });
    const memory = await loadMemory(world.sql, { bufferRounds: 20, liveWindowSeconds: 60 }, log);
    try {
      const [table] = memory.tables.byHouse.get("alpha") ?? [];
      memory.tables.byHouse.set(
        "alpha",
        Array.from({ length: 4_000 }, () => table!),
      );
      const page = await accuracyPages({ memory, sql: world.sql, log })(new URLSearchParams({ of: "alpha" }));
      const { figures } = z.object({ figures: z.array(z.object({ title: z.string() })) }).parse(page.data);
      expect(figures.at(-1)?.title).toMatch(
        /^Hit rate by day, from \d{4}-\d\d-\d\d on\. All other figures cover the whole period\.$/,
      );
    } finally {
      await memory.close();
    }
  });

  it("calls no forecast on target next to a sample that is too few to say anything of skill", async () => {
    const { text } = await ask("/accuracy?period=all&feature=all&of=alpha");
    const rows = [...text.matchAll(/<tr>(?:(?!<\/tr>).)*too few to say.*?<\/tr>/g)].map(([line]) => line);
    expect(rows.length).toBeGreaterThan(0);
    for (const line of rows) expect(line).not.toMatch(/>(on target|undecided)</);
  });

  it("is filtered by house, feature and period, and reports unknown names", async () => {
    const house = await ask("/accuracy?of=alpha&feature=all&period=24h");
    expect(house.text).toContain("<figcaption>Hit rate by hour</figcaption>");
    expect(house.text).toContain('<td class="nowrap" data-name="Forecast">window:blue:50');
    expect(house.text).toContain('</a><span class="badge quiet">pooled</span></th>');
    const nothing = await ask("/accuracy?of=beta&feature=next_color&period=7d");
    expect(nothing.text).toContain("No scored forecasts in this period yet.");
    expect(nothing.text).not.toContain("<figure");
  });

  it("shows all tables, with the reason, if the request is not valid", async () => {
    const unknown = await ask("/accuracy?of=%3Cb%3Enowhere");
    expect(unknown.status).toBe(404);
    expect(unknown.text).toContain("There is no such house or table.");
    expect(unknown.text).not.toContain("nowhere");
    for (const query of ["period=1h", "feature=pink", "page=0", "page=x"]) {
      const wrong = await ask(`/accuracy?${query}`);
      expect(wrong.status, query).toBe(400);
      expect(wrong.text).toContain("is not valid");
      expect(wrong.text).toContain(CRASH);
    }
  });

  it("draws so many views a minute for all visitors together, and then gives the numbers alone", async () => {
    const draw = drawing(pino({ level: "silent" }));
    const plot = skillPlot("Skill", [{ of: "ours", skill: 0, low: -0.1, high: 0.1 }]);
    const all = [{ plot, columns: ["of", "skill"], rows: [["ours", "0.000 %"]] }];
    const view = (name: string, drawn = all) => draw(name, () => Promise.resolve({ all: drawn, missing: "" }));
    for (let n = 0; n < 30; n += 1) await view(`nothing ${n}`, []);
    await eventually(async () => (await view("view 0")).figures[0]?.svg != null);
    for (let n = 1; n < 30; n += 1) await view(`view ${n}`);
    const { figures, missing } = await view("view 30");
    expect(figures).toEqual([{ title: "Skill", svg: null, columns: ["of", "skill"], rows: [["ours", "0.000 %"]] }]);
    expect(missing).toBe("Too many plots are requested at the moment. Please try again shortly.");
    expect((await view("view 0")).figures[0]?.svg).toContain("<svg");
  });

  it("plans and draws a view once for all who ask for it meanwhile", async () => {
    const draw = drawing(pino({ level: "silent" }));
    const plot = skillPlot("Skill", [{ of: "ours", skill: 0, low: -0.1, high: 0.1 }]);
    const all = [{ plot, columns: ["of", "skill"], rows: [["ours", "0.000 %"]] }];
    let plans = 0;
    const plan = () => Promise.resolve({ all, missing: "" }).finally(() => (plans += 1));
    const views = await Promise.all(Array.from({ length: 40 }, () => draw("one", plan)));
    expect(plans).toBe(1);
    expect(views.map(({ missing }) => missing).filter((missing) => missing.startsWith("Too many"))).toEqual([]);
  });

  it("plans a view again that could not be planned", async () => {
    const draw = drawing(pino({ level: "silent" }));
    await expect(draw("one", () => Promise.reject(new Error("no plan")))).rejects.toThrow("no plan");
    await eventually(async () => (await draw("one", () => Promise.resolve({ all: [], missing: "" }))).missing === "");
  });

  it("draws the plots of a table once for all pages of its lines", async () => {
    const other = await makeWorld({}, { on: world });
    try {
      for (let n = 1; n <= 40; n += 1) await ask(`/accuracy?of=${CRASH}&page=${n}`, other);
      expect((await ask(`/accuracy?of=${CRASH}&period=7d`, other)).text).not.toContain("Too many plots");
    } finally {
      await other.close();
    }
  });

  it.for([
    [
      "the first page",
      async (memory) => {
        return homePageOf(memory, { figures: [], missing: "No plots now." });
      },
    ],
    [
      "the page of a table",
      async (memory) => {
        return tablePageOf(memory, { figures: [], missing: "No plots now." });
      },
    ],
  ] satisfies [string, (memory: Memory) => Promise<SitePage>][])(
    "states on %s why a plot is missing",
    async ([, pageOf]) => {
      const options = { bufferRounds: 20, liveWindowSeconds: 60 };
      const memory = await loadMemory(world.sql, options, pino({ level: "silent" }));
      try {
        const page = await pageOf(memory);
        expect(await render(page)).toContain('<p class="notice" role="status">No plots now.</p>');
      } finally {
        await memory.close();
      }
    },
  );

  it.for([
    [
      "/accuracy",
      (memory) =>
        accuracyPages({ memory, sql: world.sql, log: pino({ level: "silent" }) })(new URLSearchParams({ of: CRASH })),
    ],
    ["the page of a table", (memory) => tablePageOf(memory)],
    ["the first page", (memory) => homePageOf(memory)],
  ] satisfies [string, (memory: Memory) => SitePage | Promise<SitePage>][])(
    "states on %s that a record is withheld, and why",
    async ([, pageOf]) => {
      const memory = await loadWithheld();
      try {
        const text = await render(await pageOf(memory));
        expect(text).toMatch(/Skill and intervals are withheld: more than 5 % of the rounds are void(?:,| or) late/);
        expect(text).not.toContain("No forecast was scored yet");
        expect(text).not.toContain(`interval<span class="nowrap">–`);
        expect(text).not.toContain("95 %: –");
      } finally {
        await memory.close();
      }
    },
  );

  it("is summed up on the first page, without what is simulated", async () => {
    const { text } = await ask("/");
    const { sample_size: n, hit_rate: rate, baseline_rate: baseline } = await fromApi("?feature=next_color");
    expect(text).toContain(`<strong>${n}</strong>forecasts of the next color were scored on 1 table.`);
    expect(text).toContain(`<strong class="nowrap">${percent(rate)}</strong>`);
    expect(text).toContain(`the long-run estimate was<span class="nowrap">${percent(baseline)}</span>.`);
    expect(text).toContain("too few for a verdict on skill");
  });

  it("is summed up on the first page by the rule of a house's row, whichever tables are withheld", () => {
    const tableOf = (counts: Partial<Sums>) => ({
      house: { simulated: false },
      accuracy: [{ feature: "next_color", period: "30d", sums: { ...emptySums(), ...counts } }],
    });
    const spoiled = tableOf({ n: 100n, hits: 90n, voidGap: 50n });
    const { tables, figures, sentence } = recordOf([tableOf({ n: 100n, hits: 40n }), spoiled]);
    expect({ tables, ...figures }).toMatchObject({ tables: 2, sample_size: 200, hit_rate: 0.65, interval_95: null });
    expect(sentence).toMatch(/^Skill and intervals are withheld: more than 5 % of the rounds .* own figures/);
    const large = recordOf([tableOf({ n: 10_000n, hits: 4_000n, bestLl: 1n }), spoiled]);
    expect(large).toMatchObject({ tables: 2, figures: { sample_size: 10_100, withheld: null, skill: 1 } });
  });

  it("gives a forecast one verdict, in the list and above it, whichever forecasts are chosen", async () => {
    const options = { bufferRounds: 20, liveWindowSeconds: 60 };
    const memory = await loadMemory(world.sql, options, pino({ level: "silent" }));
    // an e-value of 30: enough for one row, too little for the ten of a table
    const counts = { n: 5_000n, hits: 2_500n, sumP: 2_500_000_000n, sumPq: 1_250n * 10n ** 12n };
    const sums = { ...emptySums(), ...counts, sumLnE: [0n, 0n, 0n, 0n, 0n, 5_164_786n] };
    for (const table of memory.tables.tables) {
      table.accuracy = table.accuracy.map((one) => (one.feature === "next_color" ? { ...one, sums } : one));
    }
    try {
      const pages = accuracyPages({ memory, sql: world.sql, log: pino({ level: "silent" }) });
      for (const name of [CRASH, "alpha"]) {
        for (const feature of ["next_color", "all"]) {
          const text = await render(await pages(new URLSearchParams({ of: name, feature, period: "all" })));
          const verdicts = [...text.matchAll(/<span class="badge \w+">(o\w+ target)<\/span>/g)].map(([, one]) => one);
          expect([name, feature, new Set(verdicts)]).toEqual([name, feature, new Set(["on target"])]);
          expect(verdicts.length).toBeGreaterThan(1);
        }
      }
    } finally {
      await memory.close();
    }
  });

  it("compares a verdict with the rows of the chosen tables, without those of their houses", async () => {
    const options = { bufferRounds: 20, liveWindowSeconds: 60 };
    const memory = await loadMemory(world.sql, options, pino({ level: "silent" }));
    const own = memory.tables.byHouse.get("alpha") ?? [];
    const rows =
      own.find(({ accuracy }) => accuracy.length > 0)?.accuracy.filter(({ period }) => period === "all") ?? [];
    const counts = { n: 5_000n, hits: 2_500n, sumP: 2_500_000_000n, sumPq: 1_250n * 10n ** 12n };
    try {
      const verdictsFrom = async (eValue: number) => {
        const sumLnE = Array.from({ length: 6 }, () => BigInt(Math.round(1e6 * Math.log(eValue))));
        const accuracy = rows.map((one) => ({ ...one, sums: { ...emptySums(), ...counts, sumLnE } }));
        for (const table of memory.tables.tables) table.accuracy = own.includes(table) ? accuracy : [];
        const pages = accuracyPages({ memory, sql: world.sql, log: pino({ level: "silent" }) });
        const texts = ["alpha", ""].map(async (of) =>
          render(await pages(new URLSearchParams({ of, feature: "next_color", period: "all" }))),
        );
        return (await Promise.all(texts)).map((text) =>
          [...text.matchAll(/<a href="[^"]*">alpha\/[^<]*<\/a>.*?<span class="badge \w+">([^<]+)<\/span>/g)].map(
            ([, one]) => one,
          ),
        );
      };
      const least = 20 * own.length * rows.length;
      expect([own.length > 1, rows.length > 1]).toEqual([true, true]);
      const each = (verdict: string) => own.map(() => verdict);
      expect(await verdictsFrom(least * 1.001)).toEqual([each("off target"), each("off target")]);
      expect(await verdictsFrom(least * 0.999)).toEqual([each("on target"), each("on target")]);
    } finally {
      await memory.close();
    }
  });

  it("calls a skill what it is", () => {
    const said = (skill: number | null, interval: [number, number] | null, sampleSize = 900) =>
      skillSentence({ sample_size: sampleSize, withheld: null, skill, skill_interval_95: interval });
    expect(said(0.0001, [-0.002, 0.0022])).toBe(
      "Zero lies within the interval: no skill beyond constant probabilities is shown.",
    );
    expect(said(0, [0, 0])).toMatch(/^Zero lies within/);
    expect(said(-0.04, [-0.06, -0.02])).toBe(
      "The skill lies below zero: these statements were worse than the best constant probabilities in hindsight, by 4.0 %.",
    );
    expect(said(0.01, [0.002, 0.018])).toMatch(/^The skill lies above zero: .* by 1\.00 %\.$/);
    expect(said(null, null, 0)).toBe("No forecast was scored yet.");
    const tooFew = /^\d+ scored forecasts? (?:is|are) too few for a verdict on skill/;
    expect(said(0.018, [0.01, 0.026], 10)).toMatch(tooFew); // as it was with the first ten of a table
    expect(said(0.018, [0.01, 0.026], 499)).toMatch(tooFew);
    expect(said(0.01, null, 1)).toMatch(tooFew);
  });

  it("calls a skill that is withheld so, not unscored", () => {
    const sums = { ...emptySums(), n: 10_000n, voidGap: 600n, bestLl: 9_400_000_000n, sumLl: 9_400_100_000n };
    const sentence = "Skill and intervals are withheld: more than 5 % of the rounds are void or late.";
    expect(skillSentence(figuresOf("next_color", sums))).toBe(sentence);
    expect(skillSentence(figuresOf("next_color", { ...emptySums(), voidGap: 1n }))).toBe("No forecast was scored yet.");
  });

  it("names every line of a plot of skills, however long its name is", async () => {
    const drawer = createDrawer();
    const name = "a-house-with-a-long-name/and-a-game/and-a-market";
    try {
      const svg = await drawer.draw(skillPlot("Skill", [{ of: name, skill: 0.01, low: -0.01, high: 0.03 }]));
      expect(svg).toContain(`>${name}</text>`);
    } finally {
      await drawer.close();
    }
  });
});

/** Publishes the log of a world once. */
async function publishTo({ sql }: World): Promise<void> {
  await publishLog(sql, { folder, publicUrl: undefined, witnesses: [] }, new AbortController().signal);
}

describe("/method", () => {
  it("shows the newest checkpoint and its key", async () => {
    const far = await makeWorld({}, { on: world });
    try {
      expect((await ask("/method")).text).toContain("No checkpoint is signed yet");
      await publishTo(far);
      const { text } = await ask("/method", far);
      expect(text).toContain("not cosigned by a witness");
      expect(text).toMatch(/Verifier key:<code>localhost\/log\/[0-9a-f]{8}\+[0-9a-f]{8}\+[A-Za-z0-9+/]+=*<\/code>/);
    } finally {
      await far.close();
    }
  });
});

/** A process whose entries of the log cannot be read until `release`. */
async function holdLog() {
  const far = await makeWorld({ TRUSTED_PROXIES: ["127.0.0.1"] }, { on: world, connections: 5 });
  await publishTo(far);
  const [held, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holding = far.sql.begin(async (tx) => {
    await tx`lock table log_entries in access exclusive mode`;
    held.resolve();
    await over.promise;
  });
  await held.promise;
  const release = () => {
    over.resolve();
    return holding;
  };
  return {
    lines: far.lines,
    release,
    /** Reads an entry from an address. */
    async read(address: string, signal: AbortSignal | null = null): Promise<number> {
      const headers = { "X-Forwarded-For": address };
      return (await fetch(`${far.api.url}/log/tile/entries/000.p/1`, { headers, signal })).status;
    },
    /** Statements that wait for the entries. */
    async waiting(): Promise<number> {
      const locks = await far.sql`
        select
        from pg_locks
        where relation = 'log_entries'::regclass
          and database = (select oid from pg_database where datname = current_database())
          and not granted`;
      return locks.length;
    },
    async close() {
      await release();
      await far.close();
    },
  };
}

describe("/log", () => {
  it("is served as tlog-tiles, from which the signed root follows", async () => {
    const far = await makeWorld({}, { on: world });
    try {
      const get = async (path: string) => {
        const response = await fetch(`${far.api.url}/log/${path}`);
        return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()), headers: response.headers };
      };
      await publishTo(far);
      const checkpoint = await get("checkpoint");
      expect(checkpoint.headers.get("content-type")).toBe("text/plain; charset=utf-8");
      const key = parseVerifierKey((await get("key")).bytes.toString().trim());
      const { size, root } = openCheckpoint(checkpoint.bytes.toString(), key);
      const tile = await get(`tile/0/000.p/${size}`);
      expect(tile.headers.get("cache-control"), "a declared log has the same paths").toBe("no-cache");
      expect(await rootOf(() => Promise.resolve(tile.bytes), size)).toEqual(root);
      const bundle = (await get(`tile/entries/000.p/${size}`)).bytes;
      const leaves: Buffer[] = [];
      for (let at = 0; at < bundle.length; at += 2 + bundle.readUInt16BE(at))
        leaves.push(leafHash(bundle.subarray(at + 2, at + 2 + bundle.readUInt16BE(at))));
      expect(Buffer.concat(leaves)).toEqual(tile.bytes);
      for (const path of ["tile/0/000", `tile/0/000.p/${size + 1}`, "tile/0/001.p/1", "tile/9/000", "tile/x"])
        expect((await get(path)).status, path).toBe(404);
    } finally {
      await far.close();
    }
  });

  it.each([
    ["an address", () => "192.0.2.1"],
    ["a site of IPv6 networks", (place: number) => `2001:db8:7:${place}::1`],
  ])("is read twice at a time by %s, which leaves the other two places to others", async (_, addressOf) => {
    const held = await holdLog();
    try {
      const statuses: number[] = [];
      const one = [1, 2, 3, 4].map((place) => held.read(addressOf(place)).then((status) => statuses.push(status)));
      await eventually(() => statuses.length === 2);
      expect(statuses).toEqual([503, 503]);
      const other = held.read("192.0.2.2");
      await eventually(async () => (await held.waiting()) === 3);
      await held.release();
      expect(await other).toBe(200);
      await Promise.all(one);
      expect(statuses).toEqual([503, 503, 200, 200]);
    } finally {
      await held.close();
    }
  });

  it("is read no longer for a client that disconnected", async () => {
    const held = await holdLog();
    try {
      const leaving = new AbortController();
      const left = [1, 2].map(() => held.read("192.0.2.1", leaving.signal).catch(() => "left"));
      await eventually(async () => (await held.waiting()) === 2);
      leaving.abort();
      expect(await Promise.all(left)).toEqual(["left", "left"]);
      await eventually(async () => (await held.waiting()) === 0);
      expect(held.lines.filter((line) => line.includes("the transparency log is not served"))).toEqual([]);
      const next = held.read("192.0.2.1");
      await held.release();
      expect(await next).toBe(200);
    } finally {
      await held.close();
    }
  });
});

describe("/status", () => {
  it("reports the state of houses, polling and workers from our own rows, and nothing of machines", async () => {
    const { sql } = world;
    await sql`
      insert into workers (id, pid, host, version, queues)
      values ('w1', 4711, 'secret-host', '9.9.9', '{}')`;
    await sql`insert into heartbeats (name, detail) values ('reconcile', '{"leader":"w1"}')`;
    await sql`
      insert into polls (house_id, shard, minute, requests, statuses, bytes, latency_ms)
      select 'alpha', 0, date_trunc('minute', now()) - minutes * interval '1 minute', 1000, statuses::jsonb, 1, array_fill(0, '{10}')
      from (values (0, '{"200": 900, "304": 99, "503": 1}'), (90, '{"200": 500, "0": 500}')) as p (minutes, statuses)`;
    await sql`insert into uptime_days values ('house:alpha', (now() at time zone 'UTC')::date, 1499, 2000)`;
    const far = await makeWorld({}, { on: world });
    try {
      const { text } = await ask("/status", far);
      expect(text).toContain("1 process reported in the last 30 s.");
      expect(text).toContain('<span class="badge good">responding</span>');
      expect(text).toContain(
        '<td class="num nowrap" data-name="Good responses, 1 h">99.9 % of 1,000</td><td class="num nowrap" data-name="today (UTC)">74.9 % of 2,000</td>',
      );
      expect(text).toContain('data-name="Good responses, 1 h">none asked</td>');
      expect(text).toContain("No open notices: nothing is known to be missing.");
      expect(text).not.toMatch(/secret-host|4711|9\.9\.9|w1/);
    } finally {
      await far.close();
    }
  });

  it("shows open notices as callers get them, and closed ones apart", async () => {
    const made = await world.sql<{ id: bigint }[]>`
      insert into notices (table_id, kind, text, closed_at)
      select id, 'gap', text, closed_at
      from tables, (values ('3 rounds are missing', null), ('1 round is missing', now())) as n (text, closed_at)
      where house_id = 'beta'
      returning id`;
    const [open, closed] = made.map(({ id }) => `id="notice-${id}"`);
    const far = await makeWorld({}, { on: world });
    try {
      const { text } = await ask("/status", far);
      expect(text).toContain(
        `<li><span ${open}></span><strong>beta/crash/eu</strong><span class="badge info">simulated</span>3 rounds are missing.<small class="nowrap">Opened<time`,
      );
      const [, list = ""] = text.split("Closed notices, 90 days");
      expect(list).toContain(closed);
      expect(list).toContain("1 round is missing");
      expect(list).not.toContain("3 rounds are missing");
    } finally {
      await far.close();
    }
  });

  it("shows the history of the houses that it shows, however many are live before them", async () => {
    const far = await makeWorld();
    const ids = Array.from({ length: 35 }, (_, n) => `house${10 + n}`);
    await applyHouses(
      far.sql,
      ids.map((id) => houseEntry({ id, tables: [tableEntry({})] })),
    );
    await far.sql`
      update table_heads h
      set version = version + 1, changed_at = clock_timestamp(), last_polled_round_at = clock_timestamp()
      from tables t
      where t.id = h.table_id
        and t.house_id < 'house30'`;
    await far.sql`
      insert into uptime_days
      select 'house:' || id, (now() at time zone 'UTC')::date, 999, 1000
      from houses`;
    try {
      const { text } = await ask("/status", far);
      expect(text.match(/<small>99.90 %<\/small>/g)).toHaveLength(30);
      expect(text).not.toContain("not measured yet");
    } finally {
      await far.close();
    }
  });

  it("shows each notice that the feed links to once, however many are open, and closed ones that are older", async () => {
    const far = await makeWorld();
    const tables = Array.from({ length: 25 }, (_, n) => tableEntry({ market: `m${n}` }));
    await applyHouses(far.sql, [houseEntry({ id: "many", tables })]);
    // of the last tables the newest, of the first ones another that is older; then closed ones
    await far.sql`
      insert into notices (table_id, kind, text, opened_at, closed_at)
      select id, n.kind, 'rounds are missing', now() - n.age - (100 - position / 5) * interval '1 minute', n.closed_at
      from
        tables,
        (
          values
            ('gap', interval '0', null),
            ('stuck', interval '1 day', null),
            ('gap', interval '2 days', now())
        ) as n (kind, age, closed_at)
      where house_id = 'many'
        and (n.kind = 'gap' or position < 3)`;
    try {
      const feed = await (await fetch(`${far.api.url}/status.atom`)).text();
      const linked = [...feed.matchAll(/status#(notice-\d+)"/g)].map(([, id]) => id);
      expect(linked).toHaveLength(20);
      const { text } = await ask("/status", far);
      const shown = [...text.matchAll(/id="(notice-\d+)"/g)].map(([, id]) => id);
      expect(shown).toHaveLength(new Set(shown).size);
      expect(shown).toEqual(expect.arrayContaining(linked));
      expect(text.split("Closed notices, 90 days")[1]).toContain("Rounds are missing");
    } finally {
      await far.close();
    }
  });

  it("calls silent what is silent, and behind what is behind", () => {
    const well = { workers: 2, wrongClocks: 0, scheduledAgo: 3, pausedQueues: 0, unreadFor: null };
    const words = (changes: object) => workStates({ ...well, ...changes }).map(({ word }) => word);
    expect(words({})).toEqual(["running", "running", "up to date"]);
    expect(words({ workers: 0 })).toEqual(["silent", "running", "up to date"]);
    expect(words({ wrongClocks: 2 })).toEqual(["silent", "running", "up to date"]);
    expect(words({ scheduledAgo: 61 })).toEqual(["running", "silent", "up to date"]);
    expect(words({ scheduledAgo: null })).toEqual(["running", "silent", "up to date"]);
    expect(words({ pausedQueues: 1 })).toEqual(["running", "partly paused", "up to date"]);
    expect(words({ unreadFor: 61 })).toEqual(["running", "running", "behind"]);
    expect(workStates(null)).toEqual([]);
  });
});

describe("a part of a page that the database has", () => {
  const log = pino({ level: "silent" });

  it("is loaded once for all who ask meanwhile, and believed for a while", async () => {
    let loads = 0;
    const load = loader("it", () => Promise.resolve(++loads), { cachedMs: 60_000, log });
    expect(await Promise.all([load(), load(), load()])).toEqual([1, 1, 1]);
    expect(await load()).toBe(1);
  });

  it("is requested again by the next visitor if it failed", async () => {
    let isBroken = true;
    const load = loader("it", () => (isBroken ? Promise.reject(new Error("away")) : Promise.resolve("here")), {
      cachedMs: 60_000,
      log,
    });
    expect(await load()).toBeNull();
    isBroken = false;
    expect(await load()).toBe("here");
  });
});
