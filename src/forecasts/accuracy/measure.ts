import type { Sql } from "../../db/client.ts";
import { countMeasured, listMeasured, listWaits, type MeasuredRow } from "./measured-store.ts";
import type { Period } from "./periods.ts";
import { bestLogLoss } from "./figures/figures.ts";
import { pitHeights } from "./figures/pit.ts";
import { mergePeriods, showAccuracy, type PeriodSums } from "./present.ts";
import { referenceDetails } from "./figures/reference-sums.ts";
import { corp } from "./figures/reliability.ts";
import { verdictOf } from "./figures/verdict.ts";

/** Scope of a query: one table, a house as a whole, or all tables. */
export interface MeasureQuery {
  tableId?: number | undefined;
  house?: string | undefined;
  feature?: string | undefined;
  period: Period;
}

/** Sums and figures of a feature of a table or a house. */
export type Measured = Awaited<ReturnType<typeof measure>>[number];

/** Published sums over a period with their figures: per table, or for a house the total of its tables. */
export async function measure(sql: Sql, { period, house, feature, ...one }: MeasureQuery) {
  const scope = { house, tableIds: one.tableId === undefined ? undefined : [one.tableId] };
  const rows = await listMeasured(sql, { ...scope, period, feature });
  const shown = period === "all" ? await countMeasured(sql, scope) : 1;
  const groups = house === undefined ? [...Map.groupBy(rows, ({ tableId }) => tableId).values()] : [rows];
  const measured = [];
  for (const own of groups) {
    const [first] = own;
    if (first === undefined) continue;
    const waits = await listWaits(sql, [...new Set(own.map(({ tableId }) => tableId))]);
    const of =
      house === undefined
        ? { house: first.house, game: first.game, market: first.market }
        : { house, game: null, market: null };
    const periods: PeriodSums[] = house === undefined ? own : mergePeriods(own);
    for (const row of periods) measured.push(measuredOf(of, row, { colors: colorsOf(own, row), waits, shown }));
  }
  return measured;
}

function measuredOf(
  of: { house: string; game: string | null; market: string | null },
  row: PeriodSums,
  { colors, waits, shown }: { colors: (string | null)[]; waits: bigint[][]; shown: number },
) {
  const { sums, references } = row;
  const wholePit = waits.reduce<bigint[]>((all, pit) => pit.map((mass, bin) => mass + (all[bin] ?? 0n)), []);
  return {
    ...showAccuracy(of, row),
    verdict: verdictOf(sums, { period: row.period, shown }),
    references: referenceDetails(references, bestLogLoss(sums)),
    corp: sums.histograms.flatMap((histogram, k) => {
      const found = corp(histogram);
      return found === null ? [] : [{ color: colors[k] ?? null, ...found }];
    }),
    /** Waits for the top color in the newest calibration: a backtest of the model, not the accuracy of forecasts. */
    pit: pitHeights(wholePit),
  };
}

/** Names of the colors of a row's histograms; null if the tables of a house use different names. */
function colorsOf(own: readonly MeasuredRow[], { feature: name }: PeriodSums): (string | null)[] {
  if (name !== "next_color") return [name.split(":")[1] ?? null];
  const [first, ...others] = own.map(({ colors }) => colors);
  return (first ?? []).map((color, k) => (others.every((colors) => colors[k] === color) ? color : null));
}
