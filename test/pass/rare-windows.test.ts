import { expect, it } from "vitest";
import { addFacts, type HourDeltas } from "../../src/forecasts/accuracy/add-facts.ts";
import { featureSums } from "../../src/forecasts/accuracy/published.ts";
import { WINDOW_TARGETS } from "../../src/forecasts/model/features.ts";
import { pass } from "../../src/pass/compute/pass.ts";
import type { ForecastSetRow } from "../../src/pass/compute/rows.ts";
import { seededRandom } from "../bench/seeded-random.ts";
import { checkedItem, emptyPassState, polled, timesFrom } from "../support/passes.ts";

/** Gold is so rare that 400 rounds stay below every target, unless it occurred lately. */
const BANDS = [
  { name: "blue", below: 200 },
  { name: "pink", below: 100_000 },
  { name: "gold", below: null },
];
const GOLD_50 = 7;
const ROUNDS = 2_500;

const isGold = (round: number) => round === 3 || (round >= 2_000 && round % 10 === 0);

/** The sets that follow rounds of a fair table: gold occurs once, and from round 2,000 on often. */
function playSets(): ForecastSetRow[] {
  const random = seededRandom(1);
  const times = timesFrom(Date.parse("2026-11-21T00:00:00Z"), 1000);
  let state = emptyPassState({
    tableId: 7,
    name: "a/b/c",
    roundIds: "consecutive",
    bands: BANDS,
    edge: 0.03,
    resets: [],
  });
  const sets: ForecastSetRow[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    const fair = Math.min(99_999, Math.max(100, Math.floor(97 / (1 - random()))));
    const item = checkedItem({ roundId: String(round), hundredths: isGold(round) ? 100_000 : fair });
    const at = times(round);
    const result = pass(state, polled([item], at), { ...at, tables: 1, maySettle: true, mayIssue: true });
    if (result.rows.forecastSet !== null) sets.push(result.rows.forecastSet);
    ({ state } = result);
  }
  return sets;
}

it("counts no window as not issued for a color that became too rare to have one", () => {
  const sets = playSets();
  expect(sets.length).toBeGreaterThan(ROUNDS - 10);
  const deltas: HourDeltas = new Map();
  const facts = sets.map((set) => ({ ...set, hour: 1, isSealed: false }));
  addFacts(deltas, { sets: facts, scores: [], revisions: [], rounds: [], earlierSets: [] });
  const byFeature = new Map(
    [...deltas.values()].map(({ feature, sums }) => [feature, featureSums(feature, sums).sums]),
  );
  for (const feature of BANDS.flatMap((_, color) => WINDOW_TARGETS.map((__, target) => 1 + 3 * color + target)))
    expect([feature, byFeature.get(feature)?.notIssued ?? 0n]).toEqual([feature, 0n]);

  // gold had windows after it occurred, none when it was absent for long, and one again when it occurred again
  const of = sets.filter(({ features }) => features.includes(GOLD_50)).map(({ cutoffOrdinal }) => cutoffOrdinal);
  expect(of.filter((ordinal) => ordinal < 1_500n).length).toBeGreaterThan(0);
  expect(of.filter((ordinal) => ordinal >= 1_500n && ordinal < 2_000n)).toEqual([]);
  expect(of.filter((ordinal) => ordinal >= 2_000n).length).toBeGreaterThan(0);
});
