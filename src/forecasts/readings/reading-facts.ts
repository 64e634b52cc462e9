/**
 * The current facts of a table, from which the sentences of its reading are made.
 *
 * Each fact has its expected value and the number of rounds it is based on. `unusual` marks a value that chance alone gives
 * once in a hundred, and evidence above its threshold; with many facts of many tables some are always marked.
 */
import { lnDependence } from "./dependence.ts";
import { ALARM_FROM, longShare } from "./drift.ts";
import { impliedEdge } from "./edge-test.ts";
import { gTestPercentile } from "./g-test.ts";
import { EXPERT_COUNT, HAZARD, MARKOV } from "../model/model.ts";
import { lnOf } from "./product.ts";
import type { ReadingMemory } from "./reading-memory.ts";
import { LATELY, lately } from "./volatility.ts";

/** One fact; names with a color end in it: `gap:pink`. Null means unknown or unavailable. */
export type Fact = {
  name: string;
  value: number | null;
  expected: number | null;
  /** Rounds that it is based on. */
  rounds: number;
  unusual: boolean;
};

/** Input of a reading next to the table's rounds: from its model, and from all tables. */
export interface ReadingContext {
  /** Names of the bands, lowest first. */
  colors: readonly string[];
  /** Weights of K7's experts in the order of `EXPERTS`. */
  weights: readonly number[];
  /** Number of tables that are checked: more tables require more evidence of each. */
  tables: number;
}

/** Rounds that facts require. */
export const FEWEST_ROUNDS = 50;

/** Chance below which something counts as unusual. */
const UNUSUAL = 0.01;

/** Below this number of rounds the newest hundred are too large a part of the history to compare them with it. */
const VOLATILITY_FROM = 10 * LATELY;

/**
 * Threshold of the evidence that past rounds change the odds, and of that against the declared edge, per table that is
 * checked: chance alone ever gives it to at most one table in twenty.
 */
export const EVIDENCE_PER_TABLE = 20;

/** Weight that the experts of past rounds must have too, since a change over time gives similar evidence. */
export const WEIGHT_NEEDED = 0.5;

/** Evidence is capped here for display. */
const MOST_SHOWN = 1e12;

/**
 * The facts of a table; none before 50 rounds.
 *
 * The wait for the top color has P(gap ≥ g) = (1 − p)^g, a streak has P(streak ≥ L) = p^(L − 1), where p is the color's
 * long-run share.
 */
export function factsOf(memory: ReadingMemory, context: ReadingContext): Fact[] {
  const rounds = memory.drift.rounds;
  if (rounds < FEWEST_ROUNDS) return [];
  return [
    ...waitFacts(memory, context.colors),
    ...mixFacts(memory, context.colors),
    ...volatilityFacts(memory),
    ...driftFacts(memory),
    ...edgeFacts(memory, context),
    ...dependenceFacts(memory, context),
  ];
}

/**
 * The chance of a wait of at least `gap` rounds for a color of this share.
 *
 * @example
 * gapChance(0.1, 0); // => 1
 * gapChance(0.1, 23); // => 0.088629
 */
export function gapChance(share: number, gap: number): number {
  return (1 - share) ** gap;
}

/**
 * The chance that a streak of a color of this share reaches at least `length` rounds.
 *
 * @example
 * streakChance(0.5, 1); // => 1
 * streakChance(0.5, 8); // => 0.007813
 */
export function streakChance(share: number, length: number): number {
  return share ** (length - 1);
}

/**
 * Names of the facts that are unusual now, as in {@link factsOf}; ten times faster, for a check after every round.
 */
export function unusualFacts(memory: ReadingMemory, context: ReadingContext): string[] {
  if (memory.drift.rounds < FEWEST_ROUNDS) return [];
  const { colors: names } = context;
  const unusual: string[] = [];
  const wait = waitOf(memory);
  if (isRare(wait.chance)) unusual.push(`gap:${names[wait.top]}`, `gap_chance:${names[wait.top]}`);
  if (isRare(wait.length)) unusual.push(`streak:${names[wait.color]}`, `streak_chance:${names[wait.color]}`);
  for (const { window, isUnusual } of mixesOf(memory)) {
    if (isUnusual) unusual.push(...names.map((name) => `share_${window}:${name}`), `mix_percentile_${window}`);
  }
  const { volatility, drift, model } = memory;
  const now = volatility.rounds < VOLATILITY_FROM ? null : lately(volatility);
  if (now !== null && isExtreme(now.meanPercentile))
    unusual.push("ln_multiplier_mean_100", "ln_multiplier_mean_percentile");
  if (now !== null && isExtreme(now.spreadPercentile))
    unusual.push("ln_multiplier_sd_100", "ln_multiplier_sd_percentile");
  if (drift.reachEvidence >= ALARM_FROM) unusual.push("drift_evidence");
  if (drift.colorEvidence >= ALARM_FROM) unusual.push("drift_evidence_colors");
  if (model.edge !== null && edgeOf(memory, context).isRejected)
    unusual.push("edge", "edge_evidence", "edge_evidence_max");
  const past = pastOf(memory, context);
  if (past.evidence >= past.required) unusual.push("dependence_evidence");
  if (past.weight >= WEIGHT_NEEDED) unusual.push("dependence_weight");
  return unusual;
}

function isRare(chance: number | null): boolean {
  return chance !== null && chance < UNUSUAL;
}

function isExtreme(percentile: number): boolean {
  return percentile < UNUSUAL / 2 || percentile > 1 - UNUSUAL / 2;
}

/** The wait for the top color and the streak of the newest color, with their chances. */
function waitOf({ model, drift, dependence, colors, streak }: ReadingMemory) {
  const top = model.colors - 1;
  const share = longShare(drift, model, top);
  const { gap } = dependence;
  const color = colors.at(-1) ?? 0;
  const own = longShare(drift, model, color);
  const chance = gap === null ? null : gapChance(share, gap);
  const length = streak === null ? null : streakChance(own, streak);
  return { top, share, gap, chance, color, own, streak, length };
}

/** The colors of the newest 100 and 500 rounds next to those of all rounds before, if there are as many. */
function mixesOf({ drift, colors }: ReadingMemory) {
  return [100, 500].flatMap((window) => {
    const before = drift.rounds - window;
    if (before < window) return [];
    const counts = drift.counts.map(() => 0);
    for (let at = colors.length - window; at < colors.length; at++) counts[colors[at] ?? 0]! += 1;
    const older = drift.counts.map((n, color) => n - (counts[color] ?? 0));
    const place = gTestPercentile(counts, older);
    return { window, shares: older.map((n) => n / before), counts, place, isUnusual: place > 1 - UNUSUAL };
  });
}

function waitFacts(memory: ReadingMemory, names: readonly string[]): Fact[] {
  const { rounds } = memory.drift;
  const { top, share, gap, chance, color, own, streak, length } = waitOf(memory);
  return [
    fact(`gap:${names[top]}`, gap, 1 / share, rounds, isRare(chance)),
    fact(`gap_chance:${names[top]}`, chance, null, rounds, isRare(chance)),
    fact(`streak:${names[color]}`, streak, 1 / (1 - own), rounds, isRare(length)),
    fact(`streak_chance:${names[color]}`, length, null, rounds, isRare(length)),
  ];
}

function mixFacts(memory: ReadingMemory, names: readonly string[]): Fact[] {
  const { model, drift } = memory;
  return [
    ...names.map((name, color) =>
      fact(`share:${name}`, (drift.counts[color] ?? 0) / drift.rounds, statedShare(model, color), drift.rounds, false),
    ),
    ...mixesOf(memory).flatMap(({ window, shares, counts, place, isUnusual }) => [
      ...names.map((name, color) =>
        fact(`share_${window}:${name}`, (counts[color] ?? 0) / window, shares[color] ?? null, window, isUnusual),
      ),
      fact(`mix_percentile_${window}`, place, 0.5, window, isUnusual),
    ]),
  ];
}

/** The share by the declared edge; null if none is declared. */
function statedShare({ edge, longRunPriors, parameters }: ReadingMemory["model"], color: number): number | null {
  return edge === null ? null : (longRunPriors[color] ?? 0) / parameters.longRunPrior;
}

function volatilityFacts({ volatility }: ReadingMemory): Fact[] {
  const now = volatility.rounds < VOLATILITY_FROM ? null : lately(volatility);
  if (now === null) return [];
  const mean = volatility.sum / volatility.rounds / 1000;
  return [
    fact("ln_multiplier_mean_100", now.mean, mean, LATELY, isExtreme(now.meanPercentile)),
    fact("ln_multiplier_mean_percentile", now.meanPercentile, 0.5, volatility.rounds, isExtreme(now.meanPercentile)),
    fact("ln_multiplier_sd_100", now.spread, null, LATELY, isExtreme(now.spreadPercentile)),
    fact("ln_multiplier_sd_percentile", now.spreadPercentile, 0.5, volatility.rounds, isExtreme(now.spreadPercentile)),
  ];
}

function driftFacts({ drift }: ReadingMemory): Fact[] {
  const { reachEvidence, colorEvidence, rounds } = drift;
  return [
    fact("drift_evidence", Math.max(reachEvidence, 1), 1, rounds, reachEvidence >= ALARM_FROM),
    fact("drift_evidence_colors", Math.max(colorEvidence, 1), 1, rounds, colorEvidence >= ALARM_FROM),
  ];
}

/** The greatest evidence against the declared edge, and its threshold. */
function edgeOf({ edgeTest }: ReadingMemory, { tables }: ReadingContext) {
  const most = shownEvidence(lnOf(edgeTest.most));
  const required = requiredOf(tables);
  return { most, required, isRejected: most >= required };
}

function edgeFacts(memory: ReadingMemory, context: ReadingContext): Fact[] {
  const { model, edgeTest } = memory;
  if (model.edge === null) return [];
  const { rounds, wealth } = edgeTest;
  const { most, required, isRejected } = edgeOf(memory, context);
  return [
    fact("edge", impliedEdge(edgeTest), model.edge, rounds, isRejected),
    fact("edge_evidence", shownEvidence(lnOf(wealth)), 1, rounds, isRejected),
    fact("edge_evidence_max", most, null, rounds, isRejected),
    fact("edge_required", required, null, rounds, false),
  ];
}

function requiredOf(tables: number): number {
  return EVIDENCE_PER_TABLE * Math.max(tables, 1);
}

/** The evidence that past rounds change the odds, and its threshold. */
function pastOf({ dependence }: ReadingMemory, { weights, tables }: ReadingContext) {
  if (weights.length !== EXPERT_COUNT)
    throw new RangeError(`expected ${EXPERT_COUNT} weights of experts, got ${weights.length}`);
  return {
    evidence: shownEvidence(lnDependence(dependence)),
    required: requiredOf(tables),
    weight: (weights[MARKOV] ?? 0) + (weights[HAZARD] ?? 0),
  };
}

function dependenceFacts(memory: ReadingMemory, context: ReadingContext): Fact[] {
  const { rounds } = memory.drift;
  const { evidence, required, weight } = pastOf(memory, context);
  const { priorWeights } = memory.model.parameters;
  const prior = (priorWeights[MARKOV] ?? 0) + (priorWeights[HAZARD] ?? 0);
  return [
    fact("dependence_evidence", evidence, 1, rounds, evidence >= required),
    fact("dependence_required", required, null, rounds, false),
    fact("dependence_weight", weight, prior, rounds, weight >= WEIGHT_NEEDED),
  ];
}

function shownEvidence(ln: number): number {
  return Math.min(MOST_SHOWN, Math.exp(ln));
}

/** Rounds values to six digits, more than their precision. */
function fact(name: string, value: number | null, expected: number | null, rounds: number, unusual: boolean): Fact {
  return { name, value: shorter(value), expected: shorter(expected), rounds, unusual };
}

function shorter(value: number | null): number | null {
  return value === null ? null : Number(value.toPrecision(6));
}
