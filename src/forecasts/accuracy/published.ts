/**
 * Published accuracy: the sums of each feature over each period, in the shape that `figuresOf` takes.
 */
import { REFERENCE_SUMS, type ReferenceSums } from "./figures/reference-sums.ts";
import { REFERENCES } from "./figures/references.ts";
import { hindsightOf, type OutcomeSums } from "./figures/hindsight.ts";
import { COLORS_MAX } from "../model/model.ts";
import { theorySums, type DeclaredOdds } from "./figures/theory.ts";
import { type Bins, emptySums, type Histogram, histogramOf, type Sums, VOID_COUNT } from "./figures/sums.ts";
import { BETS_IN_TWENTIETHS } from "../score/scoring.ts";
import { BINS, KEY, outcomeKey, referenceKey, VOID_REASONS, voidKey } from "./keys.ts";
import type { SumVector } from "./sum-vector.ts";

/** The sums of a feature over a period. */
export interface FeatureSums {
  sums: Sums;
  references: ReferenceSums;
}

/** A vector as named sums, with the best constant in hindsight and the sums of `theory`. */
export function featureSums(
  feature: number,
  vector: SumVector,
  odds: DeclaredOdds = { thresholds: [], edge: null },
): FeatureSums {
  const at = (key: number) => vector.get(key) ?? 0n;
  const isWindow = feature !== 0;
  const voids = VOID_REASONS.map((name, place) => [VOID_COUNT[name], at(voidKey(place + 1))] as const);
  const voidCount = voids.reduce((sum, [, count]) => sum + count, 0n);
  const colors = isWindow ? 0 : colorsOf(vector);
  const byColor = (first: number) => Array.from({ length: colors }, (_, color) => at(first + color));
  const outcomes = outcomesOf(isWindow, vector);
  const sums: Sums = {
    ...emptySums(),
    forecasts: at(KEY.forecasts),
    n: at(KEY.n),
    hits: at(KEY.hits),
    ...Object.fromEntries(voids),
    pending: at(KEY.forecasts) - at(KEY.n) - voidCount,
    sealed: at(KEY.sealed),
    receivedRounds: at(KEY.rounds),
    notIssued: at(KEY.notIssued),
    sumP: at(KEY.sumP),
    sumPBase: at(KEY.sumPBase),
    sumPq: at(KEY.sumPq),
    sumBrier: at(KEY.sumBrier),
    sumBrierBase: at(KEY.sumBrierBase),
    sumRps: at(isWindow ? KEY.sumBrier : KEY.sumRps),
    sumRpsBase: at(isWindow ? KEY.sumBrierBase : KEY.sumRpsBase),
    sumLl: at(KEY.sumLl),
    sumLlBase: at(KEY.sumLlBase),
    brierByColor: byColor(KEY.firstBrierOfColor),
    rpsByColor: byColor(KEY.firstRpsOfColor),
    confusion: Array.from({ length: colors }, (_, color) => at(outcomeKey(color))),
    sumLnE: BETS_IN_TWENTIETHS.map((_, bet) => at(KEY.firstLnE + bet)),
    histograms: histogramsOf(vector),
    lateRounds: at(KEY.lateRounds),
    ...hindsightOf(outcomes),
  };
  return { sums, references: { ...referencesOf(vector), theory: theorySums(odds, feature, outcomes) } };
}

/** The late rounds of a table over a period, and its settled forecasts of the next color. */
export type LateRounds = Pick<Sums, "lateRounds" | "settledRounds">;

/** The late rounds of a table, which are stored with next_color only. */
export function lateRoundsOf(nextColor: SumVector): LateRounds {
  const at = (key: number) => nextColor.get(key) ?? 0n;
  const voids = VOID_REASONS.reduce((sum, _, place) => sum + at(voidKey(place + 1)), 0n);
  return { lateRounds: at(KEY.lateRounds), settledRounds: at(KEY.n) + voids };
}

/** The sums of a window with the late rounds of its table, of the same model and period. */
export function withLateRounds(
  { sums, references }: FeatureSums,
  { lateRounds, settledRounds }: LateRounds,
): FeatureSums {
  return { sums: { ...sums, lateRounds, settledRounds }, references };
}

/** Every forecast of next_color gives each color a chance, so each color has a bin after the first score. */
function colorsOf(vector: SumVector): number {
  return histogramsOf(vector).length;
}

function histogramsOf(vector: SumVector): Histogram[] {
  const bins: Bins[] = [];
  for (const [key, value] of vector) {
    if (key < KEY.firstBin) continue;
    const place = key - KEY.firstBin;
    const [color, bin, part] = [Math.floor(place / 3 / BINS), Math.floor(place / 3) % BINS, place % 3];
    while (bins.length <= color) bins.push(new Map());
    const own = bins[color]!.get(bin) ?? { n: 0, sumP: 0, hits: 0 };
    own[(["n", "sumP", "hits"] as const)[part]!] = Number(value);
    bins[color]!.set(bin, own);
  }
  return bins.map(histogramOf);
}

function referencesOf(vector: SumVector): Omit<ReferenceSums, "theory"> {
  const rows = REFERENCES.map((name, reference) => {
    const row = Object.fromEntries(
      REFERENCE_SUMS.map((field, place) => [field, vector.get(referenceKey(reference) + place) ?? 0n]),
    ) as Record<(typeof REFERENCE_SUMS)[number], bigint>;
    return [name, row] as const;
  });
  return Object.fromEntries(rows) as Omit<ReferenceSums, "theory">;
}

function outcomesOf(isWindow: boolean, vector: SumVector): OutcomeSums[] {
  const last = isWindow ? (KEY.firstBin - KEY.firstOutcome) / 3 : COLORS_MAX;
  const outcomes: OutcomeSums[] = [];
  for (const key of [...vector.keys()].toSorted((a, b) => a - b)) {
    const outcome = (key - KEY.firstOutcome) / 3;
    if (!Number.isInteger(outcome) || outcome < 0 || outcome >= last) continue;
    outcomes.push({
      color: isWindow ? null : outcome,
      window: isWindow ? { horizon: Math.floor(outcome / 2), isHit: outcome % 2 === 1 } : null,
      n: vector.get(key) ?? 0n,
      sumLl: vector.get(key + 1) ?? 0n,
      sumLl2: vector.get(key + 2) ?? 0n,
    });
  }
  return outcomes;
}
