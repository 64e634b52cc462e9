/**
 * K7 and its windows implemented directly from the formulas, without optimization: the baseline for the speed of the model,
 * and an independent check of its results.
 *
 * One object per expert, new arrays every round, every window walked from its first round.
 */
import { WINDOW_ROUNDS_MAX, WINDOW_TARGETS } from "../../../src/forecasts/model/features.ts";
import { EXPERTS, K7_1 } from "../../../src/forecasts/model/parameters.ts";

const { longRunPrior, theoryPrior, recentPrior, markovPrior, hazardPrior, share, priorWeights, gapBinEnds } = K7_1;
const X0 = K7_1.x0Hundredths / 100;

export type PlainTable = {
  thresholds: number[];
  survival: number;
  weights: number[];
  counts: number[];
  theory: { decay: number; rounds: number; reached: number }[];
  recent: number[];
  transitions: number[][];
  gaps: { hits: number; trials: number }[];
  previous: number | null;
  gap: number | null;
};

export function plainTable(thresholds: number[], edge: number): PlainTable {
  const colors = thresholds.length + 1;
  const zeros = () => Array.from({ length: colors }, () => 0);
  return {
    thresholds,
    survival: 1 - edge,
    weights: [...priorWeights],
    counts: zeros(),
    theory: [1, ...K7_1.theoryDecays].map((decay) => ({ decay, rounds: 0, reached: 0 })),
    recent: zeros(),
    transitions: zeros().map(zeros),
    gaps: [...gapBinEnds, Infinity].map(() => ({ hits: 0, trials: 0 })),
    previous: null,
    gap: null,
  };
}

/** The probabilities of the next color. */
export function plainProbabilities(table: PlainTable): number[] {
  const experts = expertsOf(table);
  return table.counts.map((_, k) => total(table.weights.map((weight, i) => weight * experts[i]![k]!)));
}

/** The smallest number of rounds that reaches each target, with its probability in ppm; each is computed separately. */
export function plainWindows(table: PlainTable, color: number): ({ rounds: number; pPpm: number } | null)[] {
  return WINDOW_TARGETS.map((target) => {
    const survivals = survivalsOf(table, color);
    for (let rounds = 1; rounds <= WINDOW_ROUNDS_MAX; rounds++) {
      const p = 1 - total(table.weights.map((weight, i) => weight * survivals[i]!()));
      if (p >= target / 100) return { rounds, pPpm: Math.floor(p * 1e6 + 0.5) };
    }
    return null;
  });
}

export function plainLearn(table: PlainTable, color: number, hundredths: number): void {
  const experts = expertsOf(table);
  const weighed = table.weights.map((weight, i) => weight * experts[i]![color]!);
  const sum = total(weighed);
  table.weights = weighed.map((weight, i) => ((1 - share) * weight) / sum + share * priorWeights[i]!);
  table.counts[color]! += 1;
  const flag = hundredths >= K7_1.x0Hundredths ? 1 : 0;
  table.theory = table.theory.map(({ decay, rounds, reached }) => ({
    decay,
    rounds: rounds * decay + 1,
    reached: reached * decay + flag,
  }));
  table.recent = table.recent.map((count, k) => count * K7_1.recentDecay + (k === color ? 1 : 0));
  if (table.previous !== null) table.transitions[table.previous]![color]! += 1;
  const isTop = color === table.thresholds.length;
  if (table.gap !== null) {
    const bin = table.gaps[binOf(table.gap)]!;
    bin.trials += 1;
    if (isTop) bin.hits += 1;
  }
  table.previous = color;
  table.gap = isTop ? 0 : table.gap === null ? null : table.gap + 1;
}

function expertsOf(table: PlainTable): number[][] {
  const longRun = longRunOf(table);
  const byName: Record<(typeof EXPERTS)[number], number[]> = {
    LR: longRun,
    TH: theoryOf(table, 0),
    TH200: theoryOf(table, 1),
    TH2000: theoryOf(table, 2),
    D1000: blend(table.recent, recentPrior, longRun),
    M1: table.previous === null ? longRun : blend(table.transitions[table.previous]!, markovPrior, longRun),
    G: hazardShares(table, table.gap),
  };
  return EXPERTS.map((name) => byName[name]);
}

function longRunOf({ counts, thresholds, survival }: PlainTable): number[] {
  const rounds = total(counts);
  const prior = bandShares(survival, thresholds);
  return counts.map((count, k) => (count + longRunPrior * prior[k]!) / (rounds + longRunPrior));
}

function theoryOf({ theory, thresholds, survival }: PlainTable, which: number): number[] {
  const { rounds, reached } = theory[which]!;
  return bandShares(((reached + theoryPrior * (survival / X0)) / (rounds + theoryPrior)) * X0, thresholds);
}

function bandShares(c: number, thresholds: number[]): number[] {
  const reaches = [1];
  thresholds.forEach((t, j) => reaches.push(Math.min(c / (t / 100), j === 0 ? 0.999 : 0.99 * reaches[j]!)));
  return reaches.map((p, j) => p - (reaches[j + 1] ?? 0));
}

function blend(counts: number[], prior: number, towards: number[]): number[] {
  const rounds = total(counts);
  return counts.map((count, k) => (count + prior * towards[k]!) / (rounds + prior));
}

function hazardShares(table: PlainTable, gap: number | null): number[] {
  const longRun = longRunOf(table);
  if (gap === null) return longRun;
  const hazard = hazardOf(table, gap);
  const others = total(longRun.slice(0, -1));
  return longRun.map((p, k) => (k === longRun.length - 1 ? hazard : ((1 - hazard) * p) / others));
}

function hazardOf(table: PlainTable, gap: number): number {
  const { hits, trials } = table.gaps[binOf(gap)]!;
  return (hits + hazardPrior * longRunOf(table).at(-1)!) / (trials + hazardPrior);
}

function binOf(gap: number): number {
  const bin = gapBinEnds.findIndex((end) => gap <= end);
  return bin === -1 ? gapBinEnds.length : bin;
}

/** For each expert a function that advances one round per call and returns the probability that the color has not occurred. */
function survivalsOf(table: PlainTable, color: number): (() => number)[] {
  const experts = expertsOf(table);
  return EXPERTS.map((name, i) => {
    if (name === "M1" && table.previous !== null) return chainSurvival(table, color, table.previous);
    let survival = 1;
    let gap = name === "G" && color === table.thresholds.length ? table.gap : null;
    return () => {
      survival *= 1 - (gap === null ? experts[i]![color]! : hazardOf(table, gap++));
      return survival;
    };
  });
}

function chainSurvival(table: PlainTable, color: number, previous: number): () => number {
  const longRun = longRunOf(table);
  const rows = table.transitions.map((row) => blend(row, markovPrior, longRun));
  let ahead: number[] = longRun.map((_, k) => (k === previous ? 1 : 0));
  return () => {
    ahead = ahead.map((_, to) => (to === color ? 0 : total(ahead.map((mass, from) => mass * rows[from]![to]!))));
    return total(ahead);
  };
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
