/**
 * Integer sums of the references over exactly the forecasts of ours that were scored; they merge like ours.
 *
 * They are stored next to each accuracy row only; a reference issues nothing, so it has no voids, chain or coverage.
 */
import { PPM } from "../../model/ppm.ts";
import { REFERENCES, type Reference } from "./references.ts";
import { mergeTheorySums, type TheorySums } from "./theory.ts";

/** What is summed of a reference, in the order of its keys (see `keys.ts`) and the units of an accuracy row. */
export const REFERENCE_SUMS = ["n", "hits", "sumP", "sumPq", "sumBrier", "sumLl"] as const;

type Row = Record<(typeof REFERENCE_SUMS)[number], bigint>;

/** The sums of each reference's scores; `theory` is null if the table declares no edge. */
export type ReferenceSums = Record<Reference, Row> & { theory: TheorySums | null };

/** No scores yet. */
export function emptyReferenceSums(): ReferenceSums {
  const row = (): Row => ({ n: 0n, hits: 0n, sumP: 0n, sumPq: 0n, sumBrier: 0n, sumLl: 0n });
  return { last_20: row(), last_100: row(), due: row(), theory: null };
}

/** The sum of any rows, as a new one: in any order, in any grouping, with the same result. */
export function mergeReferenceSums(rows: readonly ReferenceSums[]): ReferenceSums {
  const whole = { ...emptyReferenceSums(), theory: mergeTheorySums(rows.map(({ theory }) => theory)) };
  for (const row of rows) {
    for (const name of REFERENCES) for (const field of REFERENCE_SUMS) whole[name][field] += row[name][field];
  }
  return whole;
}

/**
 * The references as `/accuracy` shows them next to our figures; null when nothing was scored. Their skill is measured
 * against the mean log loss of the same best constant as ours, in nats.
 */
export function referenceFigures(
  sums: ReferenceSums,
  bestLogLoss: number | null,
): { name: keyof ReferenceSums; log_loss: number | null; brier: number | null; skill: number | null }[] {
  return rowsOf(sums).map(([name, { n, sumLl, sumBrier }]) => {
    const logLoss = n === 0n ? null : Number(sumLl) / (Number(n) * PPM);
    return {
      name,
      log_loss: logLoss,
      brier: n === 0n ? null : Number(sumBrier) / (Number(n) * PPM * PPM),
      skill: logLoss === null || bestLogLoss === null || bestLogLoss === 0 ? null : 1 - logLoss / bestLogLoss,
    };
  });
}

function rowsOf(sums: ReferenceSums): [keyof ReferenceSums, TheorySums][] {
  const { theory } = sums;
  return [
    ...REFERENCES.map((name): [Reference, Row] => [name, sums[name]]),
    ...(theory === null ? [] : [["theory", theory] as const satisfies [string, TheorySums]]),
  ];
}

/**
 * Stated and observed hit rates of a reference: if they differ, the reference is wrong, however plausible it sounds. Its z
 * is withheld with its skill: both are null without `bestLogLoss`.
 */
export function referenceDetails(sums: ReferenceSums, bestLogLoss: number | null) {
  const rows = new Map(rowsOf(sums));
  return referenceFigures(sums, bestLogLoss).map((figures) => {
    const { n, hits, sumP, sumPq } = rows.get(figures.name)!;
    const one = (part: bigint, unit = 1) => (n === 0n ? null : Number(part) / (Number(n) * unit));
    return {
      ...figures,
      sample_size: Number(n),
      hit_rate: one(hits),
      expected_rate: one(sumP, PPM),
      z: sumPq === 0n || bestLogLoss === null ? null : Number(hits * BigInt(PPM) - sumP) / Math.sqrt(Number(sumPq)),
    };
  });
}
