import type { Queryable } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import type { Period } from "./accuracy-store.ts";
import type { MeasuredRow } from "./measured-store.ts";
import { referenceSumsFromJson } from "./reference-sums.ts";
import { sumsFromJson } from "./sums-json.ts";

/** What measured features can be sorted by; all but the table follow from sums, in the database. */
export type MeasuredSort = "table" | "n" | "rate" | "z" | "skill";

/** What a list of measured features is limited to. */
export interface MeasuredFilter {
  period: Period;
  tableIds: readonly number[] | null;
  /** A feature, or the part before a star: `window:pink:*`; null for all. */
  feature: string | null;
}

/** A row whose sums cannot be read, and why; somebody has changed it. */
export interface DamagedRow extends Omit<MeasuredRow, "sums" | "references"> {
  damage: string;
}

/**
 * One page of what is published over a period, and how many rows there are. Only the rows of the page are read whole. One
 * that is damaged is listed as such, and hides no other.
 */
export async function listMeasuredPage(
  sql: Queryable,
  { period, tableIds, feature }: MeasuredFilter,
  { sort, isDown, limit, offset }: { sort: MeasuredSort; isDown: boolean; limit: number; offset: number },
): Promise<{ rows: (MeasuredRow | DamagedRow)[]; total: number }> {
  const count = (name: string) =>
    sql`case when p.sums -> 'counts' ->> ${name} ~ '^-?[0-9]{1,255}$' then (p.sums -> 'counts' ->> ${name})::float8 end`;
  const value = {
    table: sql`null::float8`,
    n: count("n"),
    rate: sql`${count("hits")} / nullif(${count("n")}, 0)`,
    z: sql`(${count("hits")} * 1e6 - ${count("sum_p")}) / nullif(sqrt(${count("sum_pq")}), 0)`,
    skill: sql`${count("sum_d")} / nullif(${count("sum_ll_base")}, 0)`,
  }[sort];
  const direction = isDown ? sql`desc nulls last` : sql`asc nulls last`;
  const named = sql`t.house_id ${direction}, t.position ${direction}, t.id, p.feature, p.model`;
  const rows = await sql<
    (Omit<MeasuredRow, "sums" | "references"> & { sums: unknown; references: unknown; total: number })[]
  >`
    with page as (
      select
        p.table_id, p.model, p.feature,
        row_number() over (order by ${sort === "table" ? named : sql`${value} ${direction}, t.house_id, t.position, t.id, p.feature, p.model`}) as place,
        count(*) over ()::integer as total
      from published_accuracy p
      join tables t on t.id = p.table_id
      where p.period = ${period}
        ${tableIds === null ? sql`` : sql`and p.table_id = any(${[...tableIds]}::integer[])`}
        ${
          feature === null
            ? sql``
            : feature.endsWith("*")
              ? sql`and starts_with(p.feature, ${feature.slice(0, -1)})`
              : sql`and p.feature = ${feature}`
        }
      order by place
      limit ${limit}
      offset ${offset}
    )
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
      p.reference_sums as "references",
      page.total
    from page
    join published_accuracy p
      on p.table_id = page.table_id
      and p.model = page.model
      and p.feature = page.feature
      and p.period = ${period}
    join tables t on t.id = p.table_id
    order by page.place`;
  return {
    total: rows[0]?.total ?? 0,
    rows: rows.map((found) => {
      const { total: _, sums, references, ...row } = found;
      try {
        return { ...row, sums: sumsFromJson(sums), references: referenceSumsFromJson(references) };
      } catch (error) {
        return { ...row, damage: reasonOf(error) };
      }
    }),
  };
}
