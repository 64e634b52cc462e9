import type { Sql } from "../db/client.ts";
import { UsageError } from "../errors.ts";
import type { Period } from "../forecasts/accuracy-store.ts";
import { listHouseIds, listMeasured, listWaits, type MeasuredRow } from "../forecasts/measured-store.ts";
import { pitHeights } from "../forecasts/pit.ts";
import { mergePeriods, showAccuracy, type PeriodSums } from "../forecasts/present.ts";
import { referenceDetails } from "../forecasts/reference-sums.ts";
import { corp } from "../forecasts/reliability.ts";
import { verdictOf } from "../forecasts/verdict.ts";
import { findTableByName } from "./table-name.ts";

/** What was asked for: of one table, one house or all tables. */
export interface Asked {
  table?: string;
  house?: string;
  feature?: string;
  period: Period;
}

/** All that is known of a feature of a table or a house. */
export type Measured = Awaited<ReturnType<typeof measure>>[number];

/**
 * What is published over a period, table by table or, of a house, its tables together, with every figure that follows.
 *
 * @throws UsageError where there is no such table or house
 */
export async function measure(sql: Sql, given: Asked) {
  const { period, feature: wanted, house } = given;
  const table = given.table === undefined ? undefined : await findTableByName(sql, given.table);
  if (house !== undefined) await requireHouse(sql, house);
  const rows = await listMeasured(sql, {
    period,
    ...(table === undefined ? {} : { tableId: table.id }),
    ...(house === undefined ? {} : { house }),
    ...(wanted === undefined ? {} : { feature: wanted }),
  });
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
    for (const row of periods) measured.push(measuredOf(of, row, colorsOf(own, row), waits));
  }
  return measured;
}

function measuredOf(
  of: { house: string; game: string | null; market: string | null },
  row: PeriodSums,
  colors: (string | null)[],
  waits: bigint[][],
) {
  const { sums, references } = row;
  const wholePit = waits.reduce<bigint[]>((all, pit) => pit.map((mass, bin) => mass + (all[bin] ?? 0n)), []);
  return {
    ...showAccuracy(of, row),
    verdict: verdictOf(sums),
    references: referenceDetails(references),
    corp: sums.histograms.flatMap((histogram, k) => {
      const found = corp(histogram);
      return found === null ? [] : [{ color: colors[k] ?? null, ...found }];
    }),
    /** Of the waits for the top color in the newest calibration: a backtest of the model, no accuracy of forecasts. */
    pit: pitHeights(wholePit),
  };
}

/** Names of the colors a row has histograms of; null where tables of a house call them differently. */
function colorsOf(own: readonly MeasuredRow[], { feature: name }: PeriodSums): (string | null)[] {
  if (name !== "next_color") return [name.split(":")[1] ?? null];
  const [first, ...others] = own.map(({ colors }) => colors);
  return (first ?? []).map((color, k) => (others.every((colors) => colors[k] === color) ? color : null));
}

async function requireHouse(sql: Sql, house: string): Promise<void> {
  const houses = await listHouseIds(sql);
  if (houses.includes(house)) return;
  const known = houses.length === 0 ? "there are none yet" : `there are ${houses.slice(0, 20).join(", ")}`;
  throw new UsageError(`there is no house ${JSON.stringify(house)}; ${known} (\`roundhouse house list\`)`);
}
