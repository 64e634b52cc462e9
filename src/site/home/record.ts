import { hasTooManyVoids } from "../../forecasts/accuracy/figures/figures.ts";
import { skillInterval, wilsonInterval } from "../../forecasts/accuracy/figures/intervals.ts";
import type { PeriodSums } from "../../forecasts/accuracy/present.ts";
import { skillSentence } from "../accuracy/skill.ts";

/** The parts of a table that its measurements need. */
interface MeasuredTable {
  house: { simulated: boolean };
  accuracy: readonly Pick<PeriodSums, "feature" | "period" | "sums">[];
}

/** The measurements of all tables together. */
export type MeasuredRecord = ReturnType<typeof recordOf>;

const FEATURE = "next_color";
const PERIOD = "30d";

/**
 * Sums the scores of the next color over 30 days, of all tables, as counts that can be added whatever their colors.
 * Simulated rounds prove nothing about real ones, so simulated houses count only if there are no others.
 */
export function recordOf(tables: readonly MeasuredTable[]) {
  const measured = tables.filter((table) => countsOf(table).some(({ n }) => n > 0n));
  const isTrue = measured.some(({ house }) => !house.simulated);
  const counted = measured
    .filter(({ house }) => house.simulated !== isTrue)
    .map((table) => countsOf(table).filter((row) => !hasTooManyVoids(row)))
    .filter((rows) => rows.length > 0);
  const sums = { n: 0n, hits: 0n, sumP: 0n, sumPBase: 0n, sumLl: 0n, bestLl: 0n, bestD2: 0n };
  for (const row of counted.flat()) {
    for (const name of ["n", "hits", "sumP", "sumPBase", "sumLl", "bestLl", "bestD2"] as const) sums[name] += row[name];
  }
  const { n, hits, sumP, sumPBase, sumLl, bestLl, bestD2 } = sums;
  const gain = bestLl - sumLl;
  const skill = bestLl === 0n ? null : Number(gain) / Number(bestLl);
  const interval = skillInterval({ n, sumD: gain, sumD2: bestD2, sumLlBase: bestLl });
  return {
    tables: counted.length,
    simulated: measured.length > 0 && !isTrue,
    n,
    hitRate: n === 0n ? null : Number(hits) / Number(n),
    interval: wilsonInterval(Number(hits), Number(n)),
    stated: n === 0n ? null : Number(sumP) / (Number(n) * 1e6),
    baseline: n === 0n ? null : Number(sumPBase) / (Number(n) * 1e6),
    skill,
    skillInterval: interval,
    sentence: skillSentence({ sample_size: Number(n), withheld: null, skill, skill_interval_95: interval }),
  };
}

function countsOf({ accuracy }: MeasuredTable) {
  return accuracy.flatMap(({ feature, period, sums }) => (feature === FEATURE && period === PERIOD ? [sums] : []));
}
