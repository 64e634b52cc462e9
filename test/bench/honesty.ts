/**
 * False alarms and power of the published figures: on fair tables at most 2.5 % of skill intervals may lie above zero and
 * few readings may raise an alarm; on unfair tables both must detect it after a number of rounds.
 *
 * Skill and its interval are those of `/accuracy`, computed from the same sums per outcome. The model is the published one.
 */
import { figuresOf } from "../../src/forecasts/accuracy/figures/figures.ts";
import { hindsightOf, type OutcomeSums } from "../../src/forecasts/accuracy/figures/hindsight.ts";
import { emptySums } from "../../src/forecasts/accuracy/figures/sums.ts";
import { isOffTarget, eValue } from "../../src/forecasts/accuracy/figures/e-value.ts";
import { emptyState, learn, probabilities } from "../../src/forecasts/model/k7.ts";
import { createModel } from "../../src/forecasts/model/model.ts";
import { nextColorPpm } from "../../src/forecasts/model/ppm.ts";
import { emptyDependence, lnDependence, watchDependence } from "../../src/forecasts/readings/dependence.ts";
import { ALARM_FROM, emptyDrift, watchDrift } from "../../src/forecasts/readings/drift.ts";
import { emptyEdgeTest, testEdge } from "../../src/forecasts/readings/edge-test.ts";
import { lnOf } from "../../src/forecasts/readings/product.ts";
import { BETS_IN_TWENTIETHS, scoreNextColor } from "../../src/forecasts/score/scoring.ts";
import { trueGames } from "../forecasts/true-games.ts";
import { seededRandom } from "./seeded-random.ts";
import type { Bench } from "./bench-result.ts";

const SIZES = [100, 500, 5_000, 20_000];
const TABLES = 400;
const POWER_TABLES = 100;
const POWER_ROUNDS = 100_000;
/** Bands by number of colors, in hundredths. */
const THRESHOLDS = { 2: [200], 3: [200, 1000], 8: [120, 150, 200, 300, 500, 1000, 3000] } as const;
const EDGE = 0.03;
/** The maximum share of fair tables above zero; two standard errors of the simulation are added. */
const ABOVE_MAX = 0.025;
const MIN_POWER = 0.9;
/** Evidence against the edge and for dependence from e = 20 on, as with one table. */
const EVIDENCE_FROM = Math.log(20);
const SEED = 20_261_123;

/** Draws the result of a round in hundredths. */
type Draw = (random: () => number, previous: number | null) => number;

/** A table in the bench. */
interface Scenario {
  name: string;
  thresholds: readonly number[];
  /** The edge that the house declares. */
  edge: number;
  draw: Draw;
  /** What must be detected: nothing if "fair", otherwise by the skill interval or by this reading. */
  kind: "fair" | "skill" | "edge" | "drift" | "dependence";
}

const crash =
  (edge: number): Draw =>
  (random) =>
    Math.max(100, Math.floor((100 * (1 - edge)) / (1 - random())));

export default {
  name: "honesty",
  about: "false alarms of skill, evidence and readings on fair tables, and their power on unfair ones",
  run({ isShort, say }) {
    const tables = isShort ? 40 : TABLES;
    const sizes = isShort ? SIZES.slice(0, 2) : SIZES;
    const results: Record<string, string | number | null>[] = [];
    const failures: string[] = [];
    for (const colors of [2, 3, 8] as const) {
      const fair: Scenario = {
        name: `fair, ${colors} colors`,
        thresholds: THRESHOLDS[colors],
        edge: EDGE,
        draw: crash(EDGE),
        kind: "fair",
      };
      const runs = Array.from({ length: tables }, (_, n) => playTable(fair, sizes, SEED + n));
      for (const size of sizes)
        results.push(
          rowOf(
            fair,
            size,
            runs.map((run) => run.get(size)!),
          ),
        );
      say(`${fair.name}: ${tables} tables`);
    }
    const blocks = trueBlocks(isShort ? 500 : 20_000, isShort ? 10 : 100);
    const truth: Scenario = {
      name: "true bustabit games",
      thresholds: THRESHOLDS[3],
      edge: 0.01,
      draw: () => 100,
      kind: "fair",
    };
    const trueSizes = sizes.filter((size) => size <= (blocks[0]?.length ?? 0));
    const trueRuns = blocks.map((block) => playTable(truth, trueSizes, 0, block));
    for (const size of trueSizes)
      results.push(
        rowOf(
          truth,
          size,
          trueRuns.map((run) => run.get(size)!),
        ),
      );
    const rounds = isShort ? 2_000 : POWER_ROUNDS;
    for (const scenario of UNFAIR) {
      const runs = Array.from({ length: isShort ? 10 : POWER_TABLES }, (_, n) =>
        playTable(scenario, [rounds], SEED + 5_000 + n),
      );
      results.push(
        rowOf(
          scenario,
          rounds,
          runs.map((run) => run.get(rounds)!),
        ),
      );
      say(`${scenario.name}: ${runs.length} tables`);
    }
    for (const row of isShort ? [] : results) failures.push(...failuresOf(row));
    const fairRows = results.filter(({ kind }) => kind === "fair");
    return {
      baseline: ABOVE_MAX,
      ours: Math.max(...fairRows.map(({ above }) => Number(above))),
      unit: "share of skill intervals above zero on fair tables, the worst row",
      results,
      shown: ["table", "rounds", "tables", "above", "below", "off_target", "edge", "drift", "dependence", "delay"],
      notes: [
        `above, below: shares of tables whose 95 % interval of skill lies there; others: shares with that verdict; seed ${SEED}`,
        "delay: median number of rounds until the reading detected it, over the tables where it did",
        `fair tables: at most ${ABOVE_MAX * 100} % above zero plus two standard errors; unfair ones: detected in at least ${MIN_POWER * 100} %`,
      ],
      failures,
    };
  },
} satisfies Bench;

/** Tables that differ from what the house declares. */
const UNFAIR: readonly Scenario[] = [
  { name: "edge 4 % declared as 1 %", thresholds: THRESHOLDS[3], edge: 0.01, draw: crash(0.04), kind: "edge" },
  {
    name: "Markov: 1.1 × the odds of the color before",
    thresholds: THRESHOLDS[3],
    edge: EDGE,
    draw: sticky(1.1),
    kind: "skill",
  },
  {
    name: "sticky: 1.3 × the odds of the color before",
    thresholds: THRESHOLDS[3],
    edge: EDGE,
    draw: sticky(1.3),
    kind: "dependence",
  },
  {
    name: "pink −40 % after 20 % of the rounds",
    thresholds: THRESHOLDS[3],
    edge: EDGE,
    draw: crash(EDGE),
    kind: "drift",
  },
];

/** Multiplies the odds of the previous round's color; within a color the multiplier has the distribution of crash games. */
function sticky(factor: number): Draw {
  const shares = [1 - (1 - EDGE) / 2, (1 - EDGE) / 2 - (1 - EDGE) / 10, (1 - EDGE) / 10];
  return (random, previous) => {
    const weights = shares.map((share, k) => (k === previous ? share * factor : share));
    let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
    const color = weights.findIndex((weight) => (left -= weight) < 0);
    const [from, to] = [
      [EDGE, 1 - (1 - EDGE) / 2],
      [1 - (1 - EDGE) / 2, 1 - (1 - EDGE) / 10],
      [1 - (1 - EDGE) / 10, 1],
    ][color] ?? [0, 1];
    const u = color === 0 ? random() * to! : from! + random() * (to! - from!);
    return Math.max(100, Math.floor((100 * (1 - EDGE)) / (1 - u)));
  };
}

/** What was detected on a table after some rounds. */
interface StageResult {
  low: number | null;
  high: number | null;
  isOff: boolean;
  edgeAt: number | null;
  driftAt: number | null;
  dependenceAt: number | null;
}

/** Simulates a table. Returns what is published after each number of rounds. */
function playTable(
  { thresholds, edge, draw, kind }: Scenario,
  sizes: readonly number[],
  seed: number,
  given: readonly number[] | null = null,
): Map<number, StageResult> {
  const random = seededRandom(seed);
  const model = createModel({ thresholds: [...thresholds], edge });
  const state = emptyState(model);
  const readings = { edge: emptyEdgeTest(), drift: emptyDrift(model.colors), dependence: emptyDependence(model) };
  const outcomes = Array.from({ length: model.colors }, (_, color): OutcomeSums => ({
    color,
    window: null,
    n: 0n,
    sumLl: 0n,
    sumLl2: 0n,
  }));
  const lnE = BETS_IN_TWENTIETHS.map(() => 0);
  const found = new Map<number, StageResult>();
  const at: Pick<StageResult, "edgeAt" | "driftAt" | "dependenceAt"> = {
    edgeAt: null,
    driftAt: null,
    dependenceAt: null,
  };
  const last = Math.max(...sizes);
  let isOff = false;
  let previous: number | null = null;
  for (let round = 1; round <= last; round++) {
    const p = nextColorPpm(probabilities(model, state));
    let hundredths: number = given === null ? draw(random, previous) : given[round - 1]!;
    // 40 % of pink results are drawn again until they are not pink
    if (kind === "drift" && round > last / 5 && hundredths >= 1000 && random() < 0.4) {
      do hundredths = draw(random, previous);
      while (hundredths >= 1000);
    }
    const color: number = thresholds.filter((threshold) => hundredths >= threshold).length;
    const score = scoreNextColor(p, p, color);
    const own = outcomes[color]!;
    own.n += 1n;
    own.sumLl += BigInt(score.ll);
    own.sumLl2 += BigInt(score.ll) * BigInt(score.ll);
    for (const [bet, gain] of score.lnE.entries()) lnE[bet]! += gain;
    if (!isOff && lnE.some((sum) => sum > 3_000_000)) isOff = isOffTarget(eValue(lnE.map(BigInt)), 1);
    testEdge(readings.edge, edge, hundredths);
    watchDrift(readings.drift, model, { color, hundredths });
    watchDependence(readings.dependence, model, color);
    if (lnOf(readings.edge.wealth) >= EVIDENCE_FROM) at.edgeAt ??= round;
    if (Math.max(readings.drift.reachEvidence, readings.drift.colorEvidence) >= ALARM_FROM) at.driftAt ??= round;
    if (round % 10 === 0 && lnDependence(readings.dependence) >= EVIDENCE_FROM) at.dependenceAt ??= round;
    learn(model, state, color, hundredths >= model.x0Hundredths);
    previous = color;
    if (!sizes.includes(round)) continue;
    const interval = intervalOf(outcomes);
    found.set(round, { low: interval?.[0] ?? null, high: interval?.[1] ?? null, isOff, ...at });
  }
  return found;
}

/** The interval of skill as `/accuracy` publishes it. */
function intervalOf(outcomes: readonly OutcomeSums[]): [number, number] | null {
  const came = outcomes.filter(({ n }) => n > 0n);
  const sums = emptySums();
  for (const { n, sumLl } of came) {
    sums.n += n;
    sums.sumLl += sumLl;
  }
  return figuresOf("next_color", { ...sums, ...hindsightOf(came) }).skill_interval_95;
}

function rowOf({ name, kind }: Scenario, rounds: number, found: readonly StageResult[]) {
  const share = (is: (one: StageResult) => boolean) =>
    Math.round((found.filter(is).length / found.length) * 10_000) / 10_000;
  const delays = found
    .map(
      (one) => ({ fair: null, skill: null, edge: one.edgeAt, drift: one.driftAt, dependence: one.dependenceAt })[kind],
    )
    .filter((delay) => delay !== null)
    .toSorted((a, b) => a - b);
  const delay = delays[Math.floor(delays.length / 2)] ?? null;
  return {
    table: name,
    kind,
    rounds,
    tables: found.length,
    above: share(({ low }) => low !== null && low > 0),
    below: share(({ high }) => high !== null && high < 0),
    off_target: share(({ isOff }) => isOff),
    edge: share(({ edgeAt }) => edgeAt !== null),
    drift: share(({ driftAt }) => driftAt !== null),
    dependence: share(({ dependenceAt }) => dependenceAt !== null),
    delay: delay === null ? null : kind === "drift" ? delay - rounds / 5 : delay,
  };
}

function failuresOf(row: Record<string, string | number | null>): string[] {
  const { table, kind, rounds, tables, above, off_target: off } = row;
  const error = 2 * Math.sqrt((ABOVE_MAX * (1 - ABOVE_MAX)) / Number(tables));
  if (kind === "fair") {
    const wrong = (name: string, value: unknown, most: number) =>
      Number(value) > most
        ? [
            `at most ${(most * 100).toFixed(1)} % ${name} on ${table} after ${rounds} rounds, got ${Number(value) * 100} %`,
          ]
        : [];
    const alarms = 0.05 + 2 * Math.sqrt((0.05 * 0.95) / Number(tables));
    return [
      ...wrong("above zero", above, ABOVE_MAX + error),
      ...wrong("off target", off, alarms),
      ...wrong("edge alarms", row["edge"], alarms),
      ...wrong("drift alarms", row["drift"], alarms),
      ...wrong("dependence alarms", row["dependence"], alarms),
    ];
  }
  const found = Number(kind === "skill" ? above : row[String(kind)]);
  return found < MIN_POWER ? [`${table} found in ${MIN_POWER * 100} % of tables, got ${found * 100} %`] : [];
}

/** Consecutive blocks of real games. */
function trueBlocks(length: number, count: number): number[][] {
  const games = trueGames(length * count, 2_000_000);
  return Array.from({ length: count }, (_, n) => games.slice(n * length, (n + 1) * length));
}
