import type { Table } from "../../published/tables.ts";
import { mergePeriods, type PeriodSums, showAccuracy } from "../../forecasts/accuracy/present.ts";
import { parameterSetOf } from "../../forecasts/model/model-name.ts";
import { LEAST_FOR_SKILL, verdictOf } from "../../forecasts/accuracy/figures/verdict.ts";
import { ratesText, share, skillText, TONES } from "../../frame/text/accuracy-format.ts";
import { ALL_FEATURES, type AskedAccuracy } from "./selection.ts";

/** One line of the list: a feature of a table, or of a house over its tables. */
export interface Measured {
  name: string;
  simulated: boolean;
  /** The line of a whole house. */
  isHouse: boolean;
  row: PeriodSums;
  figures: ReturnType<typeof showAccuracy>;
}

/** Which rows of a table are lines. */
type AskedRows = Pick<AskedAccuracy, "feature" | "period">;

/** The parts of a table that its lines need. */
type MeasuredTable = Pick<Table, "house" | "game" | "market" | "accuracy">;

/** A line whose figures are computed on demand: a page shows few of thousands. */
export interface Line {
  feature: string;
  measure(): Measured;
}

/** Returns the lines of one table; of each feature, that of the live model is the last. */
export function linesOfTable(table: MeasuredTable, asked: AskedRows): Line[] {
  const { house, game, market } = table;
  const of = { house: house.id, game, market };
  const name = `${house.id}/${game}/${market}`;
  return rowsOf(table.accuracy, asked).map((row) => ({
    feature: row.feature,
    measure: () => ({
      name,
      simulated: house.simulated,
      isHouse: false,
      row,
      figures: showAccuracy(of, row),
    }),
  }));
}

/** Returns the figures of one feature of a table over a period, for its live model; null if nothing was scored. */
export function measureTable(table: MeasuredTable, asked: AskedRows): Measured | null {
  return linesOfTable(table, asked).at(-1)?.measure() ?? null;
}

/** Returns the lines of a house over its tables; of each feature, those of live models are the last. */
export function linesOfHouse(tables: readonly MeasuredTable[], asked: AskedRows): Line[] {
  const rows = tables.flatMap(({ house, accuracy }) => {
    const own = rowsOf(accuracy, asked);
    return own.map((row, place) => ({ house, row, isLive: own[place + 1]?.feature !== row.feature }));
  });
  const groups = [...Map.groupBy(rows, ({ row }) => row.feature).values()].flatMap((own) => {
    const sets = [...Map.groupBy(own, ({ row }) => parameterSetOf(row.model)).values()];
    const isLive = (set: typeof rows) => set.some((one) => one.isLive);
    return [...sets.filter((set) => !isLive(set)), ...sets.filter(isLive)];
  });
  return groups.flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { house } = first;
    const measure = () => {
      const [row = first.row] = mergePeriods(group.map((one) => one.row));
      const figures = showAccuracy({ house: house.id, game: null, market: null }, row);
      return { name: house.id, simulated: house.simulated, isHouse: true, row, figures };
    };
    return [{ feature: first.row.feature, measure }];
  });
}

function rowsOf(accuracy: Table["accuracy"], { feature, period }: AskedRows): PeriodSums[] {
  return accuracy.filter((row) => row.period === period && (feature === ALL_FEATURES || row.feature === feature));
}

/** Formats a line; `shown` is the number of rows of the tables in its scope, of every feature. */
export function lineOf({ name, simulated, isHouse, row, figures }: Measured, shown: number) {
  const verdict = verdictOf(row.sums, { period: row.period, shown });
  return {
    name,
    simulated,
    isHouse,
    feature: row.feature,
    model: row.model,
    verdict,
    tone: TONES[verdict],
    n: figures.sample_size,
    ...ratesText(figures),
    ...skillText(figures.skill, figures.skill_interval_95),
    isTooFew: figures.sample_size > 0 && figures.sample_size < LEAST_FOR_SKILL,
    coverage: share(figures.coverage, 1),
    voids: Object.values(figures.voids).reduce((sum, one) => sum + one, 0),
  };
}
