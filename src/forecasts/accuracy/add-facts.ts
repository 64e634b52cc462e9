/**
 * What rows of a table add to its accuracy, per model, feature and hour.
 *
 * The only definition of the sums: `add-accuracy.ts` adds rows after the mark, `recompute-store.ts` adds all rows. A
 * forecast counts in the hour in which it was issued, even if it is settled later; a round in the hour of its receipt.
 */
import { REFERENCES } from "./figures/references.ts";
import { scoreOutcome } from "../score/scoring.ts";
import type { Score } from "../score/scoring.ts";
import type { Facts, RoundFacts, SetFacts, Settlement } from "./facts.ts";
import { BINS, binKey, KEY, outcomeKey, referenceKey, voidKey, windowOutcome } from "./keys.ts";
import { addTo, type SumVector } from "./sum-vector.ts";

/** Key of a row of sums. */
export interface HourKey {
  model: string;
  feature: number;
  hour: number;
}

/** The sums of one hour of a feature. */
export interface HourSums extends HourKey {
  sums: SumVector;
}

/** Sums by hour and feature, to which facts are added. */
export type HourDeltas = Map<string, HourSums>;

/** A unique text for an hour of a feature. */
export function hourKey({ model, feature, hour }: HourKey): string {
  return `${hour} ${feature} ${model}`;
}

/**
 * Adds rows of a table: issued forecasts, settlements, revisions (the replaced score is subtracted) and rounds.
 *
 * @throws Error when a row refers to a set that is not given, or a set is damaged
 */
export function addFacts(into: HourDeltas, { sets, scores, revisions, rounds, earlierSets }: Facts): void {
  const byCutoff = new Map([...earlierSets, ...sets].map((set) => [set.cutoffSeq, set]));
  for (const set of sets) addSet(into, set);
  for (const { settlements } of scores) {
    for (const settlement of settlements) {
      const set = setOf(byCutoff, settlement);
      addSettlement(into, set, settlement, 1n);
      const key = { model: set.model, feature: settlement.feature, hour: set.hour };
      if (set.isSealed) addTo(sumsOf(into, key), KEY.sealed, 1n);
    }
  }
  for (const { revision, cutoffSeq, feature, before, after } of revisions) {
    if (before === null) throw new Error(`expected a score before revision ${revision}, found none`);
    const set = setOf(byCutoff, { cutoffSeq });
    addSettlement(into, set, { feature, ...before }, -1n);
    addSettlement(into, set, { feature, ...after }, 1n);
  }
  addRounds(into, rounds, [...earlierSets, ...sets]);
}

function setOf(sets: ReadonlyMap<bigint, SetFacts>, { cutoffSeq }: { cutoffSeq: bigint }): SetFacts {
  const set = sets.get(cutoffSeq);
  if (set === undefined)
    throw new Error(`expected the forecast set after seq ${cutoffSeq}, which a score names; found none`);
  return set;
}

function sumsOf(into: HourDeltas, key: HourKey): SumVector {
  const text = hourKey(key);
  let own = into.get(text);
  if (own === undefined) into.set(text, (own = { ...key, sums: new Map() }));
  return own.sums;
}

function addSet(into: HourDeltas, { model, hour, features, ends, cutoffOrdinal, cutoffSeq }: SetFacts): void {
  const unknown = features.find((feature) => feature < 0 || feature > ends.length);
  if (unknown !== undefined) {
    const set = `the set after seq ${cutoffSeq}`;
    throw new Error(`expected features from 0 to ${ends.length} in ${set}, found ${unknown}; it is damaged`);
  }
  for (const feature of features) addTo(sumsOf(into, { model, feature, hour }), KEY.forecasts, 1n);
  // when a window has ended, the next set opens a new one of its feature; 0: its color is too rare for windows
  for (const [place, end] of ends.entries()) {
    const feature = place + 1;
    if (end > 0n && end <= cutoffOrdinal && !features.includes(feature)) {
      addTo(sumsOf(into, { model, feature, hour }), KEY.notIssued, 1n);
    }
  }
}

function addSettlement(
  into: HourDeltas,
  set: SetFacts,
  { feature, reason, outcome }: Omit<Settlement, "cutoffSeq">,
  sign: 1n | -1n,
): void {
  const sums = sumsOf(into, { model: set.model, feature, hour: set.hour });
  if (reason !== 0) return addTo(sums, voidKey(reason), sign);
  const forecast = forecastOf(set, feature);
  if (outcome === null) throw damaged(set, feature, "a score without an outcome");
  addScore(sums, scoreOutcome(forecast.pPpm, forecast.basePpm, outcome), forecast.horizon, sign);
  for (const [place, pPpm] of forecast.referencePpm.entries()) {
    if (pPpm !== null) addReference(sums, referenceKey(place), scoreOutcome(pPpm, forecast.basePpm, outcome), sign);
  }
}

interface Forecast {
  horizon: number;
  pPpm: readonly number[];
  basePpm: readonly number[];
  /** Per reference; null when the reference has no forecast. */
  referencePpm: readonly (readonly number[] | null)[];
}

/** One forecast out of a set: next_color has as many values as colors, a third of the windows. */
function forecastOf(set: SetFacts, feature: number): Forecast {
  const place = set.features.indexOf(feature);
  const colors = set.ends.length / 3;
  const horizon = set.horizons[place];
  const [from, to] = place === 0 ? [0, colors] : [colors + place - 1, colors + place];
  if (horizon === undefined || set.referencePpm.length !== REFERENCES.length * set.pPpm.length) {
    throw damaged(set, feature, "no such forecast");
  }
  return {
    horizon,
    pPpm: set.pPpm.slice(from, to),
    basePpm: set.basePpm.slice(from, to),
    referencePpm: REFERENCES.map((_, reference) => {
      const first = reference * set.pPpm.length;
      const own = set.referencePpm.slice(first + from, first + to);
      return own.every((value) => value !== null) ? own : null;
    }),
  };
}

function damaged({ cutoffSeq }: SetFacts, feature: number, found: string): Error {
  return new Error(
    `expected a forecast of feature ${feature} with its outcome in the set after seq ${cutoffSeq}, found ${found}`,
  );
}

function addScore(sums: SumVector, score: Score, horizon: number, sign: 1n | -1n): void {
  const add = (key: number, value: number) => addTo(sums, key, sign * BigInt(value));
  add(KEY.n, 1);
  if (score.hit) add(KEY.hits, 1);
  add(KEY.sumP, score.pPpm);
  add(KEY.sumPBase, score.basePpm);
  add(KEY.sumPq, score.pq);
  add(KEY.sumBrier, score.brier);
  add(KEY.sumBrierBase, score.brierBase);
  add(KEY.sumLl, score.ll);
  add(KEY.sumLlBase, score.llBase);
  for (const [bet, gain] of score.lnE.entries()) add(KEY.firstLnE + bet, gain);
  const outcome = outcomeKey(score.kind === "window" ? windowOutcome(horizon, score.hit) : score.outcome);
  add(outcome, 1);
  add(outcome + 1, score.ll);
  addTo(sums, outcome + 2, sign * BigInt(score.ll) ** 2n);
  const addToBin = (color: number, pPpm: number, isHit: boolean) => {
    const bin = binKey(color, Math.min(BINS - 1, Math.floor(pPpm / 1000)));
    add(bin, 1);
    add(bin + 1, pPpm);
    if (isHit) add(bin + 2, 1);
  };
  if (score.kind === "window") return addToBin(0, score.pPpm, score.hit);
  add(KEY.sumRps, score.rps);
  add(KEY.sumRpsBase, score.rpsBase);
  for (const [color, value] of score.brierByColor.entries()) add(KEY.firstBrierOfColor + color, value);
  for (const [color, value] of score.rpsByColor.entries()) add(KEY.firstRpsOfColor + color, value);
  for (const [color, pPpm] of score.pPpmByColor.entries()) addToBin(color, pPpm, color === score.outcome);
}

/** In the order of `REFERENCE_SUMS`. */
function addReference(sums: SumVector, first: number, score: Score, sign: 1n | -1n): void {
  const { hit, pPpm, pq, brier, ll } = score;
  for (const [place, value] of [1, Number(hit), pPpm, pq, brier, ll].entries()) {
    addTo(sums, first + place, sign * BigInt(value));
  }
}

/**
 * Coverage: a round counts for the model of the newest set before it. It had a forecast if the cutoff of that set is the
 * previous on-time round; a late round never has one.
 */
function addRounds(into: HourDeltas, rounds: readonly RoundFacts[], sets: readonly SetFacts[]): void {
  const ordered = sets.toSorted((a, b) => Number(a.cutoffSeq - b.cutoffSeq));
  let before = -1;
  for (const { seq, ordinal, hour } of rounds) {
    while (before + 1 < ordered.length && ordered[before + 1]!.cutoffSeq < seq) before++;
    const set = ordered[before];
    if (set === undefined) continue; // the table had no forecast yet
    const sums = sumsOf(into, { model: set.model, feature: 0, hour });
    addTo(sums, KEY.rounds, 1n);
    if (ordinal === null) addTo(sums, KEY.lateRounds, 1n);
    if (ordinal === null || set.cutoffOrdinal !== ordinal - 1n) addTo(sums, KEY.notIssued, 1n);
  }
}
