/**
 * An accuracy row: scores summed as integers.
 *
 * Rows are stored per table, model, feature and UTC hour of issue; longer periods and houses are sums of them. All fields
 * are sums, so `mergeSums` gives the same row in any order and grouping of the hours. BigInt
 * because squares in ppm² of a long period exceed 2^53.
 */
import { BETS_IN_TWENTIETHS } from "../../score/scoring.ts";

/** The integer fields and their API names: ppm for p, ppm² for pq, Brier and RPS, micro-nats for ll. */
export const COUNTS = [
  // All issued forecasts: scored, void and pending.
  ["forecasts", "forecasts"],
  // Scored forecasts, and their hits.
  ["n", "n"],
  ["hits", "hits"],
  ["voidGap", "void_gap"],
  ["voidLate", "void_late"],
  ["voidConflict", "void_conflict"],
  ["voidImpossible", "void_impossible"],
  ["voidOperator", "void_operator"],
  ["pending", "pending"],
  // Settled forecasts that a cosigned checkpoint covered before the next round was requested.
  ["sealed", "sealed"],
  // Rounds received in this hour since the table's first forecast, the late ones of them, and those without a forecast.
  ["receivedRounds", "received_rounds"],
  ["lateRounds", "late_rounds"],
  ["notIssued", "not_issued"],
  ["sumP", "sum_p"],
  ["sumPBase", "sum_p_base"],
  ["sumPq", "sum_pq"],
  ["sumBrier", "sum_brier"],
  ["sumBrierBase", "sum_brier_base"],
  ["sumRps", "sum_rps"],
  ["sumRpsBase", "sum_rps_base"],
  ["sumLl", "sum_ll"],
  ["sumLlBase", "sum_ll_base"],
] as const;

type Count = (typeof COUNTS)[number][0];

/** Stated probabilities within one thousandth: their number, their sum in ppm, and the hits. */
export type Bin = { n: number; sumP: number; hits: number };

/** By p div 1000 ppm. */
export type Bins = Map<number, Bin>;

/**
 * Bins as one list of numbers: of each that is not empty, ascending, its p div 1000 ppm, `n`, `sumP` and `hits`. Exact up
 * to 9 billion statements. An API holds fifty rows per table, and a `Map` of BigInts takes more than three times as much.
 */
export type Histogram = readonly number[];

/** A histogram from its bins. */
export function histogramOf(bins: Bins): Histogram {
  const ascending = [...bins].toSorted(([a], [b]) => a - b);
  return ascending.flatMap(([index, { n, sumP, hits }]) => [index, n, sumP, hits]);
}

/** The bins of a histogram, ascending. */
export function binsOf(histogram: Histogram): Bins {
  const bins: Bins = new Map();
  for (let at = 0; at < histogram.length; at += 4) {
    bins.set(histogram[at]!, { n: histogram[at + 1]!, sumP: histogram[at + 2]!, hits: histogram[at + 3]! });
  }
  return bins;
}

/** The sums of a row. */
export type Sums = Record<Count, bigint> & {
  /** Parts of Brier score and RPS by color, and how often each color occurred; empty for windows. */
  brierByColor: bigint[];
  rpsByColor: bigint[];
  confusion: bigint[];
  /** What each bet of the calibration e-value gained, micro-nats, in the order of `BETS_IN_TWENTIETHS`. */
  sumLnE: bigint[];
  /** Mass of the waits for the top color by bin of their PIT, a million ppm a wait; empty before the first wait. */
  pit: bigint[];
  /** Stated probabilities: one histogram per color, for windows one. Bins, ECE and CORP derive from it. */
  histograms: Histogram[];
  /** Of merged rows, the histograms of each. */
  histogramsByRow?: readonly (readonly Histogram[])[];
  /** The best constant in hindsight, fitted table by table; both 0 if outcome sums are not stored. */
  bestLl: bigint;
  bestD2: bigint;
  /**
   * Of a published window: the settled next_color forecasts of its table, from whose row `lateRounds` is. 0 in a row of
   * next_color and in a backtest, where `lateRounds` relates to the row's own forecasts.
   */
  settledRounds: bigint;
  /** Of several tables, the scores of those whose own row is withheld (see `poolSums`); 0 in a row of one table. */
  nWithheld: bigint;
};

/** Why a forecast is void, and its count. */
export const VOID_COUNT = {
  gap: "voidGap",
  late: "voidLate",
  conflict: "voidConflict",
  impossible: "voidImpossible",
  operator: "voidOperator",
} as const;

/** Why a forecast is void. */
export type VoidKind = keyof typeof VOID_COUNT;

/** All voids of a row. */
export function voidsOf(sums: Pick<Sums, (typeof VOID_COUNT)[VoidKind]>): bigint {
  return Object.values(VOID_COUNT).reduce((sum, count) => sum + sums[count], 0n);
}

/** An empty row. */
export function emptySums(): Sums {
  return {
    forecasts: 0n,
    n: 0n,
    hits: 0n,
    voidGap: 0n,
    voidLate: 0n,
    voidConflict: 0n,
    voidImpossible: 0n,
    voidOperator: 0n,
    pending: 0n,
    sealed: 0n,
    receivedRounds: 0n,
    lateRounds: 0n,
    notIssued: 0n,
    sumP: 0n,
    sumPBase: 0n,
    sumPq: 0n,
    sumBrier: 0n,
    sumBrierBase: 0n,
    sumRps: 0n,
    sumRpsBase: 0n,
    sumLl: 0n,
    sumLlBase: 0n,
    brierByColor: [],
    rpsByColor: [],
    confusion: [],
    sumLnE: BETS_IN_TWENTIETHS.map(() => 0n),
    pit: [],
    histograms: [],
    bestLl: 0n,
    bestD2: 0n,
    settledRounds: 0n,
    nWithheld: 0n,
  };
}

/** The sum of any rows, as a new one: in any order, in any grouping, with the same result. */
export function mergeSums(rows: Iterable<Sums>): Sums {
  const whole = emptySums();
  const bins: Bins[] = [];
  const byRow: (readonly Histogram[])[] = [];
  for (const row of rows) {
    for (const [name] of COUNTS) whole[name] += row[name];
    addInto(whole.brierByColor, row.brierByColor);
    addInto(whole.rpsByColor, row.rpsByColor);
    addInto(whole.confusion, row.confusion);
    addInto(whole.sumLnE, row.sumLnE);
    addInto(whole.pit, row.pit);
    whole.bestLl += row.bestLl;
    whole.bestD2 += row.bestD2;
    whole.settledRounds += row.settledRounds;
    whole.nWithheld += row.nWithheld;
    row.histograms.forEach((histogram, k) => {
      bins[k] ??= new Map();
      for (const [index, bin] of binsOf(histogram)) addToBin(bins[k], index, bin);
    });
    byRow.push(...(row.histogramsByRow ?? [row.histograms]));
  }
  whole.histograms = bins.map(histogramOf);
  whole.histogramsByRow = byRow;
  return whole;
}

function addToBin(bins: Bins, index: number, add: Bin): void {
  const bin = bins.get(index) ?? { n: 0, sumP: 0, hits: 0 };
  bins.set(index, { n: bin.n + add.n, sumP: bin.sumP + add.sumP, hits: bin.hits + add.hits });
}

/** Tables of one house may have different numbers of colors: a missing element counts as zero. */
function addInto(into: bigint[], values: readonly bigint[]): void {
  values.forEach((value, k) => (into[k] = (into[k] ?? 0n) + value));
}
