import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createModel } from "../../../src/forecasts/model/model.ts";
import { factsOf, gapChance, streakChance, type Fact } from "../../../src/forecasts/readings/reading-facts.ts";
import { readingFromText, readingToText } from "../../../src/forecasts/readings/reading-json.ts";
import type { AuditRow, NumberReset } from "../../../src/forecasts/readings/house-audit.ts";
import {
  auditOf,
  emptyReading,
  readRound,
  type ReadingMemory,
  type ReadRound,
} from "../../../src/forecasts/readings/reading-memory.ts";
import { seededRandom } from "../../bench/seeded-random.ts";
import { lnOf } from "../../../src/forecasts/readings/product.ts";
import { generatedRounds } from "../streams.ts";

const MODEL = createModel({ thresholds: [200, 1000], edge: 0.03 });
const COLORS = ["blue", "purple", "pink"];
const WEIGHTS = MODEL.parameters.priorWeights;
const HOURS = ["2026-11-21T08:00:00.0000000Z", "2026-11-21T09:00:00.0000000Z", "2026-11-21T10:00:00.0000000Z"];

/** Learns rounds in seq order; returns the audit row of every hour with rounds, as of its last round. */
function readRounds(
  memory: ReadingMemory,
  given: Iterable<ReadRound>,
  resets: readonly NumberReset[] = [],
): AuditRow[] {
  const rows = new Map<string, AuditRow>();
  const keep = () => {
    const row = auditOf(memory);
    if (row !== null) rows.set(row.hour, row);
  };
  let isTouched = false;
  for (const round of given) {
    const { hour } = memory.tally;
    if (isTouched && hour !== null && round.receivedHour > hour) keep();
    readRound(memory, round, resets);
    isTouched = true;
  }
  if (isTouched) keep();
  return [...rows.values()];
}

/** Generated rounds with gaps, late ones and three hours. */
function rounds(count: number): ReadRound[] {
  let id = 1000n;
  return generatedRounds(count).map(({ hundredths, afterGap }, index) => {
    const late = index % 50 === 49;
    if (!late) id += afterGap ? 3n : 1n;
    return {
      seq: BigInt(index + 1),
      roundId: late ? `${id - 2n}.late` : String(id),
      hundredths,
      late,
      afterGap: afterGap && !late,
      verified: index % 3 === 0 ? true : null,
      receivedHour: HOURS[Math.floor((3 * index) / count)] ?? "",
    };
  });
}

function simple(multipliers: readonly number[]): ReadRound[] {
  return multipliers.map((hundredths, index) => ({
    seq: BigInt(index + 1),
    roundId: String(index + 1),
    hundredths,
    late: false,
    afterGap: false,
    verified: null,
    receivedHour: HOURS[0] ?? "",
  }));
}

function memoryOf(given: readonly ReadRound[]) {
  const memory = emptyReading(MODEL, { consecutive: true });
  const audits = readRounds(memory, given);
  return { memory, audits };
}

const facts = (given: readonly ReadRound[], tables = 1) =>
  factsOf(memoryOf(given).memory, { colors: COLORS, weights: WEIGHTS, tables });
const named = (list: readonly Fact[], name: string) => list.find((fact) => fact.name === name);

describe("the memory of a reading", () => {
  it("is the same text however the rounds were cut, kept and taken up again", () => {
    const all = rounds(700);
    const { memory, audits } = memoryOf(all);
    const whole = readingToText(memory);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 8 }), (sizes) => {
        let parts = emptyReading(MODEL, { consecutive: true });
        const rows = new Map<string, unknown>();
        for (let at = 0, i = 0; at < all.length; i++) {
          const size = sizes[i % sizes.length] ?? 1;
          for (const row of readRounds(parts, all.slice(at, at + size))) rows.set(row.hour, row);
          at += size;
          parts = readingFromText(readingToText(parts)) ?? parts;
        }
        expect(readingToText(parts)).toBe(whole);
        expect([...rows.values()]).toEqual(audits);
      }),
      { numRuns: 20 },
    );
  });

  it.each([
    ["no JSON", (text: string) => text.slice(1)],
    ["another version", (text: string) => text.replace('"version":1', '"version":2')],
    ["a missing part", (text: string) => text.replace('"streak"', '"strike"')],
    ["bands that no table has", (text: string) => text.replace('"thresholds":[200,1000]', '"thresholds":[1000,200]')],
    ["bands that do not fit the rest", (text: string) => text.replace('"thresholds":[200,1000]', '"thresholds":[200]')],
    // multiplying it would never end
    ["evidence of nothing", (text: string) => text.replace(/"wealth":\{"value":[^,]+/, '"wealth":{"value":0')],
  ])("is not read from %s", (_, damage) => {
    const text = readingToText(memoryOf(rounds(60)).memory);
    expect(damage(text)).not.toBe(text);
    expect(readingFromText(damage(text))).toBeNull();
  });

  it("learns nothing from late rounds but what they prove and fill", () => {
    const [first, ...rest] = simple([150, 250, 1500, 120]);
    const late = { ...first!, seq: 5n, roundId: "9", late: true, hundredths: 99_900 };
    const before = memoryOf([first!, ...rest]).memory;
    const after = memoryOf([first!, ...rest, late]).memory;
    const { tally: _, ...known } = JSON.parse(readingToText(before)) as { tally: unknown };
    const { tally: __, ...learned } = JSON.parse(readingToText(after)) as { tally: unknown };
    expect(learned).toEqual(known);
    expect(after.tally.rounds).toBe(5);
  });
});

describe("the audit of a table", () => {
  it("counts missing rounds between the first and the newest one, and no longer once they arrive late", () => {
    const given = simple([150, 250, 150]);
    const gapped = [given[0]!, { ...given[1]!, roundId: "5", afterGap: true }, { ...given[2]!, roundId: "6" }];
    expect(memoryOf(gapped).audits.at(-1)).toMatchObject({ rounds: 3, missing: 3, gaps: 1 });
    const late = { ...given[0]!, seq: 4n, roundId: "3", late: true, verified: true };
    expect(memoryOf([...gapped, late]).audits.at(-1)).toMatchObject({ rounds: 4, missing: 2, gaps: 1, proven: 1 });
    const older = { ...late, seq: 5n, roundId: "0" };
    expect(memoryOf([...gapped, late, older]).audits.at(-1)).toMatchObject({ rounds: 5, missing: 2 });
    const above = { ...late, seq: 5n, roundId: "9" };
    expect(memoryOf([...gapped, late, above]).audits.at(-1)).toMatchObject({ rounds: 5, missing: 4 });
  });

  it("leaves out numbers above that of a reset, also if the table began with them", () => {
    const given = (...ids: number[]) =>
      ids.map((id, at) => ({
        ...simple([150])[0]!,
        seq: BigInt(at + 1),
        roundId: String(id),
        late: id < 9_000 && at < 5,
      }));
    const missingAfter = (all: ReadRound[], ...resets: NumberReset[]) =>
      readRounds(emptyReading(MODEL, { consecutive: true }), all, resets).at(-1)?.missing;
    const begun = [{ ...given(100)[0]!, late: false }, ...given(100, 9_001, 9_002, 101, 103, 104, 106).slice(1)];
    expect(missingAfter(begun)).toBe(8_896);
    expect(missingAfter(begun, { afterSeq: 5, number: "103", above: 2 })).toBe(2);
    const wrong = given(9_001, 101, 102, 103, 104, 105, 107);
    expect(missingAfter(wrong, { afterSeq: 5, number: "104", above: 1 })).toBe(1);
    const twice = [
      { afterSeq: 5, number: "200", above: 2 },
      { afterSeq: 5, number: "103", above: 0 },
    ];
    expect(missingAfter(begun, ...twice)).toBe(2);
  });

  it("has one row for each hour with rounds, as of the last of them, and never goes back", () => {
    const all = simple(Array.from({ length: 6 }, () => 300));
    const given = all.map((round, index) => ({ ...round, receivedHour: HOURS[[0, 0, 2, 1, 2, 2][index] ?? 0] ?? "" }));
    const { audits } = memoryOf(given);
    expect(audits.map(({ hour, seq, tested }) => [hour, seq, tested])).toEqual([
      [HOURS[0], 2n, 2],
      [HOURS[2], 6n, 6],
    ]);
  });

  it("has the evidence against the declared edge, and its maximum so far", () => {
    const many = simple([...Array.from({ length: 300 }, () => 105), ...Array.from({ length: 3000 }, () => 300)]);
    const { audits } = memoryOf(many);
    const [row] = audits;
    expect(row?.lnEMax).toBeGreaterThanOrEqual(row?.lnE ?? 0n);
    expect(row?.lnEMax).toBeGreaterThan(2_995_732n);
  });

  it("tests no edge if none is declared", () => {
    const memory = emptyReading(createModel({ thresholds: [200], edge: null }), { consecutive: false });
    expect(readRounds(memory, simple([150, 300]))).toMatchObject([
      { edgePpm: null, tested: 0, lnE: 0n, missing: null },
    ]);
  });
});

describe("the facts of a table", () => {
  const tail = (last: readonly number[]) => simple([...Array.from({ length: 99 }, () => 150), ...last]);

  it("are none before 50 rounds", () => {
    expect(facts(simple(Array.from({ length: 49 }, () => 150)))).toEqual([]);
    expect(facts(simple(Array.from({ length: 50 }, () => 150)))).not.toEqual([]);
  });

  it("give the wait for the top color and its exact chance (1 − p)^g", () => {
    const list = facts(tail([1500, 150, 150, 250]));
    const gap = named(list, "gap:pink");
    expect(gap).toMatchObject({ value: 3, rounds: 103, unusual: false });
    const share = 1 / (gap?.expected ?? 0);
    expect(named(list, "gap_chance:pink")?.value).toBeCloseTo(gapChance(share, 3), 4);
    expect(gapChance(0.1, 3)).toBeCloseTo(0.9 * 0.9 * 0.9, 12);
  });

  it("give the streak of the newest color and its exact chance p^(L − 1)", () => {
    const list = facts(tail([250, 150, 150, 150]));
    const streak = named(list, "streak:blue");
    expect(streak?.value).toBe(3);
    const share = 1 - 1 / (streak?.expected ?? 0);
    expect(named(list, "streak_chance:blue")?.value).toBeCloseTo(streakChance(share, 3), 4);
    expect(streakChance(0.5, 3)).toBe(0.25);
  });

  it("do not know wait and streak after missing rounds, until the color occurs and changes again", () => {
    const given = tail([1500, 150, 150, 150]);
    const last = given.at(-1)!;
    const gapped = [...given.slice(0, -1), { ...last, roundId: "200", afterGap: true }];
    expect(named(facts(gapped), "gap:pink")?.value).toBeNull();
    expect(named(facts(gapped), "streak:blue")?.value).toBeNull();
    const more = (hundredths: number, seq: bigint) => ({ ...last, seq, roundId: String(100n + seq), hundredths });
    expect(named(facts([...gapped, more(1500, 104n)]), "gap:pink")?.value).toBe(0);
    expect(named(facts([...gapped, more(1500, 104n)]), "streak:pink")?.value).toBe(1);
  });

  it("ask for more evidence of dependence the more tables there are", () => {
    expect(named(facts(rounds(300), 1), "dependence_required")?.value).toBe(20);
    expect(named(facts(rounds(300), 12), "dependence_required")?.value).toBe(240);
  });

  it("reject the declared edge only at 20 times the number of tables, and later by the greatest evidence", () => {
    const given = simple(
      [100, 60, 348].flatMap((length, part) => Array.from({ length }, () => (part === 1 ? 105 : 250))),
    );
    const least = [20, 100].map((evidence) => {
      return given.findIndex((_, at) => mostOf(given.slice(0, at + 1)) >= evidence) + 1;
    });
    const [at20 = 0, at100 = 0] = least;
    const isRejected = (count: number, tables: number) => named(facts(given.slice(0, count), tables), "edge")?.unusual;
    expect([isRejected(at20 - 1, 1), isRejected(at20, 1)]).toEqual([false, true]);
    expect([isRejected(at20, 5), isRejected(at100 - 1, 5), isRejected(at100, 5)]).toEqual([false, false, true]);
    const end = facts(given, 5);
    expect(named(end, "edge_evidence")?.value).toBeLessThan(1);
    expect(named(end, "edge_evidence_max")).toMatchObject({ unusual: true });
    expect(named(end, "edge_required")?.value).toBe(100);
  });

  function mostOf(given: readonly ReadRound[]): number {
    return Math.exp(lnOf(memoryOf(given).memory.edgeTest.most));
  }

  it("compare the newest 100 with the long run only once there is one", () => {
    expect(named(facts(rounds(300)), "ln_multiplier_mean_percentile")).toBeUndefined();
    const place = named(facts(rounds(1200)), "ln_multiplier_mean_percentile")?.value;
    expect(place).toBeGreaterThan(0);
    expect(place).toBeLessThan(1);
  });

  it.each([
    ["mix_percentile_100", [200, 1000]],
    ["mix_percentile_500", [200, 1000]],
    ["mix_percentile_100", [120, 150, 200, 300, 500, 1000, 3000]],
  ])("give a nearly uniform %s on fair tables from the first moment on (bands %j)", (name, thresholds) => {
    const first = Array.from({ length: 1000 }, (_, table) => firstValue(name, thresholds, seededRandom(table + 1)));
    const sorted = first.toSorted((a, b) => a - b);
    const distance = Math.max(...sorted.map((value, at) => Math.abs(value - (at + 0.5) / sorted.length)));
    expect(distance).toBeLessThan(0.08); // of 1,000 uniform values less than 0.052; χ² is an approximation
  });

  /** The first value of a fact on a fair table; asked for every 50 rounds. */
  function firstValue(name: string, thresholds: readonly number[], random: () => number): number {
    const model = createModel({ thresholds: [...thresholds], edge: 0.03 });
    const memory = emptyReading(model, { consecutive: true });
    const context = { colors: [0, ...thresholds].map(String), weights: WEIGHTS, tables: 1 };
    for (let seq = 1; seq <= 10_000; seq++) {
      const hundredths = Math.max(100, Math.floor(97 / (1 - random())));
      readRound(memory, { ...simple([hundredths])[0]!, seq: BigInt(seq) }, []);
      const found = seq % 50 === 0 ? named(factsOf(memory, context), name)?.value : null;
      if (found != null) return found;
    }
    throw new Error(`expected ${name} within 10,000 rounds, found none`);
  }
});
