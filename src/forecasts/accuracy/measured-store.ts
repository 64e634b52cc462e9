import type { Sql } from "../../db/client.ts";
import type { Period } from "./accuracy-store.ts";
import type { PeriodSums } from "./present.ts";
import { referenceSumsFromJson } from "./reference-sums.ts";
import { sumsFromJson } from "./sums-json.ts";

/** What is published of a feature of a table over a period, and whose it is. */
export interface MeasuredRow extends PeriodSums {
  tableId: number;
  house: string;
  game: string;
  market: string;
  colors: string[];
}

/** What is published over a period: of one table, one house, one feature or all of them, next color first. */
export async function listMeasured(
  sql: Sql,
  { period, tableId, house, feature }: { period: Period; tableId?: number; house?: string; feature?: string },
): Promise<MeasuredRow[]> {
  const rows = await sql<(Omit<MeasuredRow, "sums" | "references"> & Record<"sums" | "references", unknown>)[]>`
    select
      t.id as "tableId",
      t.house_id as house,
      t.game,
      t.market,
      (select array_agg(band ->> 'name' order by place) from jsonb_array_elements(t.colors) with ordinality b (band, place))
        as colors,
      p.model,
      p.feature,
      p.period,
      utc_text(p.period_start) as start,
      utc_text(p.period_end) as "end",
      p.sums,
      p.reference_sums as "references"
    from published_accuracy p
    join tables t on t.id = p.table_id
    where p.period = ${period}
      ${tableId === undefined ? sql`` : sql`and t.id = ${tableId}`}
      ${house === undefined ? sql`` : sql`and t.house_id = ${house}`}
      ${feature === undefined ? sql`` : sql`and p.feature = ${feature}`}
    order by t.house_id, t.position, t.id, p.feature, p.model`;
  return rows.map((row) => ({
    ...row,
    sums: sumsFromJson(row.sums),
    references: referenceSumsFromJson(row.references),
  }));
}

/** Every house we know, by id. */
export async function listHouseIds(sql: Sql): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id
    from houses
    order by id`;
  return rows.map(({ id }) => id);
}

/**
 * The PIT of the waits for the top color in the newest calibration of each of these tables that its live state went
 * through; a table without waits is not in it.
 */
export async function listWaits(sql: Sql, tableIds: readonly number[]): Promise<bigint[][]> {
  const rows = await sql<{ pit: string[] | null }[]>`
    select distinct on (table_id)
      jsonb_path_query_first(sums, '$[*] ? (@.feature == "next_color").sums.pit') as pit
    from calibrations
    where table_id = any(${[...tableIds]}::integer[])
      and kind <> 'manual'
    order by table_id, id desc`;
  return rows.flatMap(({ pit }) => (pit === null || pit.length === 0 ? [] : [pit.map(BigInt)]));
}
