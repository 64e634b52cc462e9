import { figuresOf, poolSums } from "../../forecasts/accuracy/figures/figures.ts";
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
 * Sums the scores of the next color over 30 days, of all tables, by the rule of a house's row. Simulated rounds prove
 * nothing about real ones, so simulated houses count only if there are no others.
 */
export function recordOf(tables: readonly MeasuredTable[]) {
  const measured = tables
    .map(({ house, accuracy }) => ({ house, rows: countsOf(accuracy) }))
    .filter(({ rows }) => rows.some(({ n }) => n > 0n));
  const isTrue = measured.some(({ house }) => !house.simulated);
  const counted = measured.filter(({ house }) => house.simulated !== isTrue);
  const figures = figuresOf(FEATURE, poolSums(counted.flatMap(({ rows }) => rows)));
  return {
    tables: counted.length,
    simulated: measured.length > 0 && !isTrue,
    figures,
    sentence: skillSentence(figures),
  };
}

/** The sums without what differs with the colors of a table, which takes the most time to add. */
function countsOf(accuracy: MeasuredTable["accuracy"]) {
  return accuracy.flatMap(({ feature, period, sums }) =>
    feature === FEATURE && period === PERIOD ? [{ ...sums, confusion: [], histograms: [] }] : [],
  );
}
