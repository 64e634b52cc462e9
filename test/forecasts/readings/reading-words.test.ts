import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Fact } from "../../../src/forecasts/readings/reading-facts.ts";
import { LANGUAGES, sentencesOf } from "../../../src/forecasts/readings/reading-languages.ts";
import { readingText } from "../../../src/forecasts/readings/reading-text.ts";
import { promisesIn } from "../words.ts";

const ROOT = path.join(import.meta.dirname, "../../..");

const chance = fc.double({ min: 0, max: 1, noNaN: true });
const evidence = fc.oneof(
  fc.double({ min: 0, max: 100, noNaN: true }),
  fc.constantFrom(0, 1, 19.99, 20, 60, 1e4, 1e6, 1e12),
);
const orNull = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null });

/** Facts of any table that could be, and some that could not. */
const anyFacts = fc
  .record({
    gap: orNull(fc.integer({ min: 0, max: 2000 })),
    streak: orNull(fc.integer({ min: 1, max: 40 })),
    colors: fc.constantFrom(["blue", "purple", "pink"], ["low", "high"], ["a", "b", "c", "d", "e", "f", "g", "h"]),
    newest: fc.nat(7),
    share: fc.double({ min: 0.001, max: 0.999, noNaN: true }),
    chance,
    mix: orNull(chance),
    place: orNull(chance),
    drift: evidence,
    edge: orNull(fc.record({ value: chance, expected: chance, now: evidence, most: evidence })),
    evidence,
    required: fc.constantFrom(20, 60, 20_000),
    weight: chance,
    unusual: fc.boolean(),
    rounds: fc.integer({ min: 50, max: 5_000_000 }),
  })
  .map((given): { facts: Fact[]; rounds: number } => {
    const { colors, rounds, unusual } = given;
    const top = colors.at(-1) ?? "";
    const newest = colors[given.newest % colors.length] ?? "";
    const fact = (name: string, value: number | null, expected: number | null = null): Fact => ({
      name,
      value,
      expected,
      rounds,
      unusual,
    });
    const facts = [
      fact(`gap:${top}`, given.gap, 1 / given.share),
      fact(`gap_chance:${top}`, given.gap === null ? null : given.chance),
      fact(`streak:${newest}`, given.streak),
      fact(`streak_chance:${newest}`, given.streak === null ? null : given.chance),
      ...colors.map((color) => fact(`share:${color}`, given.share)),
      ...(given.mix === null ? [] : colors.map((color) => fact(`share_100:${color}`, given.share))),
      ...(given.mix === null ? [] : [fact("mix_percentile_100", given.mix)]),
      ...(given.place === null ? [] : [fact("ln_multiplier_mean_percentile", given.place)]),
      fact("drift_evidence", given.drift),
      fact("drift_evidence_colors", given.drift),
      ...(given.edge === null
        ? []
        : [
            fact("edge", given.edge.value, given.edge.expected),
            fact("edge_evidence", given.edge.now),
            fact("edge_evidence_max", given.edge.most),
            fact("edge_required", given.required),
          ]),
      fact("dependence_evidence", given.evidence),
      fact("dependence_required", given.required),
      fact("dependence_weight", given.weight),
    ];
    return { facts, rounds };
  });

describe.each(LANGUAGES)("readings in %s", (language) => {
  it("promise nothing and advise nothing, whatever the facts are", () => {
    fc.assert(
      fc.property(anyFacts, ({ facts, rounds }) => {
        const text = readingText({ state: "speaking", facts, rounds }, language);
        expect(promisesIn(text)).toEqual([]);
        expect(text).not.toMatch(/undefined|null|NaN|Infinity|\[object|[{}]| {2}/);
        expect(text).toMatch(/[.)]$/);
      }),
      { numRuns: 300 },
    );
  });

  it("say that the past has changed the odds only past both thresholds", () => {
    fc.assert(
      fc.property(anyFacts, ({ facts, rounds }) => {
        const text = readingText({ state: "speaking", facts, rounds }, language);
        const value = (name: string) => facts.find((fact) => fact.name === name)?.value ?? 0;
        const isChanged =
          value("dependence_evidence") >= value("dependence_required") && value("dependence_weight") >= 0.5;
        const unchanged = { en: "has not changed the odds", es: "no ha cambiado las prob", pt: "não mudou as prob" };
        const changed = { en: "has mattered", es: "ha importado", pt: "fez diferença" };
        expect(text.includes(changed[language])).toBe(isChanged);
        expect(text.includes(unchanged[language])).toBe(!isChanged);
      }),
      { numRuns: 300 },
    );
  });

  it("say that the declared edge is not kept only from the required evidence on, and of less that chance gives it", () => {
    fc.assert(
      fc.property(anyFacts, ({ facts, rounds }) => {
        const text = readingText({ state: "speaking", facts, rounds }, language);
        const valueOf = (name: string) => facts.find((fact) => fact.name === name)?.value;
        const [most, required] = [valueOf("edge_evidence_max") ?? -1, valueOf("edge_required") ?? Infinity];
        const kept = { en: "rounds fit the declared", es: "rondas encajan con la", pt: "rodadas combinam com a" };
        const doubted = {
          en: "up to one table in 20",
          es: "hasta una de cada 20",
          pt: "até uma em cada 20",
        };
        const rejected = {
          en: "do not fit the declared",
          es: "no encajan con la ventaja",
          pt: "não combinam com a vant",
        };
        expect(text.includes(rejected[language])).toBe(most >= required);
        expect(text.includes(doubted[language])).toBe(most >= 20 && most < required);
        expect(text.includes(kept[language])).toBe(most >= 0 && most < 20);
      }),
      { numRuns: 300 },
    );
  });

  it("have a sentence for a table without facts", () => {
    const states = ["paused", "silent", "nothing_yet", "speaking"] as const;
    const texts = states.map((state) =>
      readingText({ state, facts: [], rounds: state === "speaking" ? 12 : 0 }, language),
    );
    expect(new Set(texts).size).toBe(4);
    expect(texts.flatMap((text) => promisesIn(text))).toEqual([]);
    expect(promisesIn(sentencesOf(language).notice)).toEqual([]);
    expect(texts[3]).toContain("12");
  });

  it("count one round as one", () => {
    const one = readingText({ state: "speaking", facts: [], rounds: 1 }, language);
    expect(one).toMatch({ en: /1 round of/, es: /1 ronda de/, pt: /1 rodada de/ }[language]);
  });
});

describe("the word test", () => {
  it.each([
    "pink is due",
    "a sure thing",
    "guaranteed to come",
    "the next one will hit 10x",
    "ya toca pink",
    "una apuesta segura",
    "resultado garantizado",
    "vai dar pink",
    "com certeza",
    "lucro garantido",
  ])("finds %j", (text) => {
    expect(promisesIn(text)).not.toEqual([]);
  });

  it.each(["no outcome is guaranteed", 'the forecaster called "due" loses', "las rondas de esta mesa", "a rodada"])(
    "lets %j pass",
    (text) => {
      expect(promisesIn(text)).toEqual([]);
    },
  );

  /** Comments are for readers of the code; the rest may reach a caller. */
  const withoutComments = (text: string) => text.replaceAll(/\/\*.*?\*\/|^\s*\/\/.*$/gms, "");

  it("passes over everything that people read: the README, the changelog, the houses file and the pages", () => {
    const files = [
      "README.md",
      ...globSync("docs/*.md", { cwd: ROOT }),
      "CHANGELOG.md",
      "houses.yaml",
      ...globSync("src/{site,frame}/**/*.{ts,eta}", { cwd: ROOT }),
    ];
    const found = files.flatMap((file) =>
      promisesIn(withoutComments(readFileSync(path.join(ROOT, file), "utf8")), ["en"]).map((one) => `${file} ${one}`),
    );
    expect(found).toEqual([]);
  });

  it("covers every text that the API returns", () => {
    const files = globSync(["src/api/**/*.ts", "src/forecasts/{accuracy/present,readings/reading-*}.ts"], {
      cwd: ROOT,
    });
    expect(files).toEqual(
      expect.arrayContaining(["src/forecasts/accuracy/present.ts", "src/forecasts/readings/reading-english.ts"]),
    );
    const texts = files.flatMap((file) =>
      [
        ...withoutComments(readFileSync(path.join(ROOT, file), "utf8")).matchAll(/"(?:[^"\\\n]|\\.)*"|`[^`]*`/g),
      ].flatMap(([literal]) => (literal.includes(" ") ? promisesIn(literal).map((one) => `${file} ${one}`) : [])),
    );
    expect(texts).toEqual([]);
  });
});
