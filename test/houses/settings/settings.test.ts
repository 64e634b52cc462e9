import { loadHouses } from "../../../src/houses-file/load.ts";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { UsageError } from "../../../src/errors.ts";
import { adapters } from "../../../src/houses/adapters/index.ts";
import { houseSettings } from "../../../src/houses/settings/settings.ts";
import { tableEntry } from "../../support/houses.ts";

const ROOT = path.join(import.meta.dirname, "../../..");

/** What is wrong with a house of one table, as `path: message`. */
function problems(table: Record<string, unknown>, house: Record<string, unknown> = {}): string[] {
  const entry = { id: "acme", name: "Acme", base_url: "https://acme.example", tables: [tableEntry(table)], ...house };
  const parsed = houseSettings.safeParse(entry);
  return parsed.success ? [] : parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
}

describe("an adapter in houses.yaml", () => {
  it("brings its own paths, and takes its own options only", () => {
    expect(problems({ adapter: "roobet", feed: {}, round_ids: "opaque" })).toEqual([]);
    expect(problems({ adapter: "roobet", feed: undefined, round_ids: "opaque" })).toEqual([]);
    expect(problems({ adapter: "roobet", feed: { path: "/x" } })).toEqual([expect.stringContaining("tables.0.feed: ")]);
    expect(problems({ adapter: "blaze", feed: { api: "v3" } })).toEqual([
      expect.stringContaining("tables.0.feed.api: "),
    ]);
    expect(problems({ adapter: "roobet", feed: { scale: 0.01 } })).toEqual([
      "tables.0.feed.scale: is fixed by the adapter; leave it out",
    ]);
    expect(problems({ adapter: "bustabit", feed: {} })).toEqual([
      "tables.0.feed.first_round_id: expected the number of a recent game, where polling begins",
    ]);
  });

  it("with a page for each round needs ids that count up", () => {
    expect(problems({ adapter: "ethercrash", feed: {}, round_ids: "opaque" })).toEqual([
      "tables.0.round_ids: expected consecutive: ethercrash has a page for each number",
    ]);
  });

  it("names the headers that its house insists on, once it is asked", () => {
    const table = { adapter: "lucky-jet", feed: {}, round_ids: "opaque" };
    expect(problems(table, { headers: { "Customer-Id": "c" } })).toEqual([
      "tables.0.adapter: lucky-jet needs the headers session-id; set them under headers of the house",
    ]);
    expect(problems(table, { enabled: false })).toEqual([]);
  });

  it.each(["rollbit", "Duelbits", "gamdom", "nanogames", "spribe", "jetx", "1xbet"])(
    "%s is not supported yet, and the error names another way to its rounds",
    (adapter) => {
      expect(problems({ adapter })).toEqual([
        expect.stringMatching(
          /^tables\.0\.adapter: the adapter ".*" is not supported yet: .*; its rounds are reachable through `roundhouse import`/,
        ),
      ]);
    },
  );

  it("that is unknown is refused with the known names", () => {
    expect(problems({ adapter: "betty" })).toEqual([
      `tables.0.adapter: expected one of the adapters ${Object.keys(adapters).join(", ")}, found "betty"`,
    ]);
    expect(problems({ adapter: 7 })).toHaveLength(1);
  });

  it("may be omitted with its feed, and the address of the house, if nothing is polled: rounds are imported there", () => {
    const off = { enabled: false };
    const missing =
      "expected where and how rounds are listed; only a table that is not polled, with `enabled: false` or of a house with it, needs no feed";
    expect(problems({ feed: undefined })).toEqual([`tables.0.feed: ${missing}`]);
    expect(problems({ feed: undefined, ...off })).toEqual([]);
    expect(problems({ feed: undefined }, off)).toEqual([]);
    expect(problems({ feed: undefined }, { ...off, base_url: undefined })).toEqual([]);
    expect(problems({}, { base_url: undefined })).toEqual([
      "base_url: expected a URL; only a demo house, or one with `enabled: false`, needs none",
    ]);
    // a file may bring the hashes that no feed does
    expect(problems({ feed: undefined, round_ids: "opaque", fairness: { chain: "blaze" } }, off)).toEqual([]);
    expect(problems({ adapter: "bustabit", feed: undefined }, off)).toEqual([
      "tables.0.feed.first_round_id: expected the number of a recent game, where polling begins",
    ]);
  });

  it("is asked as often and under the name that its house's settings say", () => {
    expect(problems({}, { requests_per_minute: 0 })).toHaveLength(1);
    expect(problems({}, { user_agent: "two\nlines" })).toHaveLength(1);
    expect(problems({}, { requests_per_minute: 30, user_agent: "Roundhouse (ann@example.org)" })).toEqual([]);
  });
});

describe("aliases of YAML", () => {
  const load = async (text: string) => {
    const folder = await mkdtemp(path.join(tmpdir(), "houses-"));
    const file = path.join(folder, "houses.yaml");
    await writeFile(file, text);
    try {
      return loadHouses(file, () => undefined, { allowPrivate: false });
    } finally {
      await rm(folder, { recursive: true });
    }
  };

  it("may be as many as there are tables", async () => {
    const table = JSON.stringify(tableEntry());
    const colors = /"colors":(\[.*?\])/.exec(table)?.[1] ?? "";
    const tables = Array.from({ length: 150 }, (_, n) => {
      const anchored = n === 0 ? `&c ${colors}` : "*c ";
      return `      - ${table.replace(colors, anchored).replace(/"market":"[^"]*"/, `"market":"m${n}"`)}`;
    });
    const house = "houses:\n  - id: acme\n    name: Acme\n    base_url: https://acme.example\n    tables:";
    const [loaded] = await load([house, ...tables].join("\n"));
    expect(loaded?.settings.tables).toHaveLength(150);
  });

  it("that are mistyped are reported as the file's error", async () => {
    await expect(load("houses: *nowhere\n")).rejects.toThrow(UsageError);
    await expect(load("houses: *nowhere\n")).rejects.toThrow(/houses\.yaml is not usable: .*nowhere/);
  });
});

describe("the real houses that ship", () => {
  const real = loadHouses(path.join(ROOT, "houses.real.yaml"), () => undefined, { allowPrivate: false });

  it("are all switched off, each with a budget, and need no variable until they are used", () => {
    expect(real.map(({ settings }) => settings.enabled)).toEqual(real.map(() => false));
    expect(real.every(({ settings }) => (settings.requests_per_minute ?? Infinity) <= 30)).toBe(true);
  });

  it("are one for each named adapter, and share no id with the demo", () => {
    const named = real.flatMap(({ settings }) => settings.tables.map(({ adapter }) => adapter));
    expect(named.toSorted()).toEqual(
      Object.keys(adapters)
        .filter((name) => name !== "json")
        .toSorted(),
    );
    const demo = loadHouses(path.join(ROOT, "houses.yaml"), () => undefined, { allowPrivate: false });
    const ids = [...real, ...demo].map(({ settings }) => settings.id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("spend no more than their budget by polling alone", () => {
    for (const { settings } of real) {
      const perMinute = (60_000 / settings.poll_every_ms) * settings.tables.length;
      expect(perMinute, settings.id).toBeLessThanOrEqual(settings.requests_per_minute ?? 0);
    }
  });

  it("report a missing variable once they are enabled", async ({ onTestFinished }) => {
    const folder = await mkdtemp(path.join(tmpdir(), "houses-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const text = await readFile(path.join(ROOT, "houses.real.yaml"), "utf8");
    const file = path.join(folder, "houses.yaml");
    await writeFile(file, text.replaceAll("enabled: false", "enabled: true"));
    expect(() => loadHouses(file, () => undefined, { allowPrivate: false })).toThrow(/STAKE_TOKEN is not set/);
  });
});
