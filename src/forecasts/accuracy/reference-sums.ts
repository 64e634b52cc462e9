/**
 * What the references come to: integer sums over exactly the forecasts of ours that were scored, merged like ours.
 *
 * They are kept beside each accuracy row and nowhere else; a reference issues nothing, so it has no voids, no chain and
 * no coverage of its own.
 */
import { exactInteger } from "./exact-integer.ts";
import { PPM } from "../model/ppm.ts";
import { REFERENCES, referencePpm, referenceWindowPpm, type Reference, type References } from "./references.ts";
import { scoreNextColor, scoreWindow, type Score } from "../score/scoring.ts";

/** The integer fields and their names outside, in the units of an accuracy row. */
const FIELDS = [
  ["n", "n"],
  ["hits", "hits"],
  ["sumP", "sum_p"],
  ["sumPq", "sum_pq"],
  ["sumBrier", "sum_brier"],
  ["sumLl", "sum_ll"],
  ["sumLlBase", "sum_ll_base"],
  ["sumD", "sum_d"],
  ["sumD2", "sum_d2"],
] as const;

type Row = Record<(typeof FIELDS)[number][0], bigint>;

/** The sums of each reference's scores. */
export type ReferenceSums = Record<Reference, Row>;

/** Sums as JSON, decimal strings by reference; empty where nothing was scored. */
export type ReferenceSumsJson = Record<string, Record<string, string>>;

/** A forecast of ours that was scored, with all that scoring a reference in its place takes. */
export interface ScoredForecast {
  feature: string;
  cutoffSeq: bigint;
  horizon: number;
  basePpm: readonly number[];
  /** Index of the color that came; of a window 1 where its color came, else 0. */
  outcome: number;
}

/** No scores yet. */
export function emptyReferenceSums(): ReferenceSums {
  const row = (): Row => ({
    n: 0n,
    hits: 0n,
    sumP: 0n,
    sumPq: 0n,
    sumBrier: 0n,
    sumLl: 0n,
    sumLlBase: 0n,
    sumD: 0n,
    sumD2: 0n,
  });
  return { last_20: row(), last_100: row(), due: row() };
}

/**
 * Score all references in the place of a forecast of ours, against the baseline issued with it.
 *
 * A reference has no windows of its own: it is asked for the color within as many rounds as our window named.
 *
 * @param references what they remembered at the forecast's cutoff
 * @param window index of the window's color, null for `next_color`
 */
export function scoreReferences(
  sums: ReferenceSums,
  references: References,
  { basePpm, horizon, outcome }: Pick<ScoredForecast, "basePpm" | "horizon" | "outcome">,
  window: number | null = null,
): void {
  for (const name of REFERENCES) {
    const score =
      window === null
        ? scoreNextColor(referencePpm(references, name), basePpm, outcome)
        : scoreWindow(referenceWindowPpm(references, name, window, horizon), basePpm[0] ?? 0, outcome === 1);
    add(sums[name], score);
  }
}

function add(row: Row, score: Score): void {
  row.n += 1n;
  if (score.hit) row.hits += 1n;
  row.sumP += BigInt(score.pPpm);
  row.sumPq += BigInt(score.pq);
  row.sumBrier += BigInt(score.brier);
  row.sumLl += BigInt(score.ll);
  row.sumLlBase += BigInt(score.llBase);
  row.sumD += BigInt(score.d);
  row.sumD2 += BigInt(score.d) * BigInt(score.d);
}

/** The sum of any rows, as a new one: in any order, in any grouping, with the same result. */
export function mergeReferenceSums(rows: Iterable<ReferenceSums>): ReferenceSums {
  const whole = emptyReferenceSums();
  for (const row of rows) {
    for (const name of REFERENCES) for (const [field] of FIELDS) whole[name][field] += row[name][field];
  }
  return whole;
}

/** Sums as JSON: equal sums are equal texts. */
export function referenceSumsToJson(sums: ReferenceSums): ReferenceSumsJson {
  if (REFERENCES.every((name) => sums[name].n === 0n)) return {};
  return Object.fromEntries(
    REFERENCES.map((name) => [
      name,
      Object.fromEntries(FIELDS.map(([field, column]) => [column, String(sums[name][field])])),
    ]),
  );
}

/**
 * Sums from their JSON.
 *
 * @throws Error if anything is missing, more than it should be, or not a plain decimal integer
 */
export function referenceSumsFromJson(json: unknown): ReferenceSums {
  const sums = emptyReferenceSums();
  if (!isRecord(json)) throw damaged("no object");
  if (Object.keys(json).length === 0) return sums;
  if (Object.keys(json).length !== REFERENCES.length) throw damaged(Object.keys(json).join(", "));
  for (const name of REFERENCES) {
    const row = json[name];
    if (!isRecord(row) || Object.keys(row).length !== FIELDS.length) throw damaged(`another ${name}`);
    for (const [field, column] of FIELDS) {
      try {
        sums[name][field] = exactInteger(row[column]);
      } catch (error) {
        throw damaged(`${name} with a damaged ${column}`, error);
      }
    }
  }
  return sums;
}

/**
 * The references as `/accuracy` shows them next to our figures; null when nothing was scored. Their skill is measured
 * against the mean log loss of the same best constant as ours, in nats.
 */
export function referenceFigures(
  sums: ReferenceSums,
  bestLogLoss: number | null,
): { name: Reference; log_loss: number | null; brier: number | null; skill: number | null }[] {
  return REFERENCES.map((name) => {
    const { n, sumLl, sumBrier } = sums[name];
    const logLoss = n === 0n ? null : Number(sumLl) / (Number(n) * PPM);
    return {
      name,
      log_loss: logLoss,
      brier: n === 0n ? null : Number(sumBrier) / (Number(n) * PPM * PPM),
      skill: logLoss === null || bestLogLoss === null || bestLogLoss === 0 ? null : 1 - logLoss / bestLogLoss,
    };
  });
}

/**
 * What a reference stated next to what came: when the hit rate leaves the stated one, the reference is wrong, however
 * plausible it sounds.
 */
export function referenceDetails(sums: ReferenceSums, bestLogLoss: number | null) {
  return referenceFigures(sums, bestLogLoss).map((figures) => {
    const { n, hits, sumP, sumPq } = sums[figures.name];
    const one = (part: bigint, unit = 1) => (n === 0n ? null : Number(part) / (Number(n) * unit));
    return {
      ...figures,
      sample_size: Number(n),
      hit_rate: one(hits),
      expected_rate: one(sumP, PPM),
      z: sumPq === 0n ? null : Number(hits * BigInt(PPM) - sumP) / Math.sqrt(Number(sumPq)),
    };
  });
}

function isRecord(json: unknown): json is Record<string, unknown> {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

function damaged(found: string, cause?: unknown): Error {
  return new Error(
    `expected the sums of ${REFERENCES.join(", ")}, got ${found}; recompute the row from its scores`,
    cause === undefined ? {} : { cause },
  );
}
