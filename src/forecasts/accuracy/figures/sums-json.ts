import { reasonOf } from "../../../errors.ts";
import { exactInteger } from "./exact-integer.ts";
import { PIT_BINS } from "./pit.ts";
import { BETS_IN_TWENTIETHS } from "../../score/scoring.ts";
import { type Bins, binsOf, COUNTS, emptySums, type Histogram, histogramOf, type Sums } from "./sums.ts";

/** A row as JSON: every integer a decimal string, because most JSON readers lose precision above 2^53. */
export type SumsJson = {
  counts: Record<string, string>;
  brier_by_color: string[];
  rps_by_color: string[];
  confusion: string[];
  sum_ln_e: string[];
  pit: string[];
  histograms: Record<string, [n: string, sumP: string, hits: string]>[];
};

/** The row as JSON, keys always in the same order, so that equal rows are equal texts. */
export function sumsToJson(sums: Sums): SumsJson {
  return {
    counts: Object.fromEntries(COUNTS.map(([name, column]) => [column, String(sums[name])])),
    brier_by_color: sums.brierByColor.map(String),
    rps_by_color: sums.rpsByColor.map(String),
    confusion: sums.confusion.map(String),
    sum_ln_e: sums.sumLnE.map(String),
    pit: sums.pit.map(String),
    histograms: sums.histograms.map((histogram) =>
      Object.fromEntries(
        [...binsOf(histogram)].map(([index, bin]) => [index, [`${bin.n}`, `${bin.sumP}`, `${bin.hits}`]]),
      ),
    ),
  };
}

/**
 * Parses a row from its JSON. Hand-written: thousands of rows are read, and a schema library takes ten times as long.
 *
 * @throws Error if anything is missing, unexpected, or not a plain decimal integer
 */
export function sumsFromJson(json: unknown): Sums {
  let at = "";
  /** Records the current path for the error. */
  const part = (row: Record<string, unknown>, name: string): unknown => {
    at = name;
    return row[name];
  };
  try {
    const row = objectOf(json, PARTS);
    const sums = emptySums();
    const counts = objectOf(part(row, "counts"), COLUMNS);
    for (const [name, column] of COUNTS) sums[name] = exactInteger(part(counts, column));
    sums.brierByColor = integersOf(part(row, "brier_by_color"));
    sums.rpsByColor = integersOf(part(row, "rps_by_color"));
    sums.confusion = integersOf(part(row, "confusion"));
    sums.sumLnE = integersOf(part(row, "sum_ln_e"), BETS_IN_TWENTIETHS.length);
    sums.pit = integersOf(part(row, "pit"), 0, PIT_BINS);
    sums.histograms = listOf(part(row, "histograms")).map(parseHistogram);
    return sums;
  } catch (error) {
    throw new Error(
      `expected the sums of an accuracy row, got ${at === "" ? "" : `in ${at} `}${reasonOf(error)}; ` +
        `recompute the row from its scores`,
      { cause: error },
    );
  }
}

const COLUMNS = COUNTS.map(([, column]) => column);
const PARTS = ["counts", "brier_by_color", "rps_by_color", "confusion", "sum_ln_e", "pit", "histograms"];
const BIN_INDEX = /^(?:0|[1-9]\d{0,2})$/;

/** An object with exactly these keys, or with any keys if none are given. */
function objectOf(json: unknown, keys?: readonly string[]): Record<string, unknown> {
  if (typeof json !== "object" || json === null || Array.isArray(json)) throw new Error("no object");
  const row = json as Record<string, unknown>;
  const missing = keys?.find((key) => !Object.hasOwn(row, key));
  if (missing !== undefined) throw new Error(`no ${missing}`);
  const found = keys === undefined ? 0 : Object.keys(row).length - keys.length;
  if (found > 0) throw new Error(`${found} fields too many`);
  return row;
}

/** A list, of one of these lengths if any are given. */
function listOf(json: unknown, ...lengths: number[]): unknown[] {
  if (!Array.isArray(json)) throw new Error("no list");
  if (lengths.length > 0 && !lengths.includes(json.length)) throw new Error(`a list of ${json.length}`);
  return json as unknown[];
}

function integersOf(json: unknown, ...lengths: number[]): bigint[] {
  return listOf(json, ...lengths).map(exactInteger);
}

function parseHistogram(json: unknown): Histogram {
  const bins: Bins = new Map();
  for (const [index, bin] of Object.entries(objectOf(json))) {
    if (!BIN_INDEX.test(index)) throw new Error(`a bin ${index}`);
    const [n, sumP, hits] = listOf(bin, 3);
    bins.set(Number(index), { n: numberOf(n), sumP: numberOf(sumP), hits: numberOf(hits) });
  }
  return histogramOf(bins);
}

function numberOf(json: unknown): number {
  return Number(exactInteger(json));
}
