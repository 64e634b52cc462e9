import type { Queryable } from "../../db/client.ts";
import type { Color } from "../../rounds/colors.ts";
import type { Selected } from "../columns.ts";
import { FORECAST_SETS, type ForecastSetRow } from "../compute/rows.ts";

const SELECTED = FORECAST_SETS.selectFrom("s");

/** The open sets and the newest one of tables, by cutoff, and the bands of cutoffs with another palette than the head. */
export function listOpenSets(sql: Queryable, ids: readonly number[]) {
  return sql<(Selected<ForecastSetRow> & { tableId: number; cutoffSeq: bigint; otherBands: Color[] | null })[]>`
    select
      s.table_id as "tableId",
      ${SELECTED},
      (
        select p.bands
        from rounds c
        join palettes p on p.id = c.palette
        where c.table_id = h.table_id
          and c.seq = s.cutoff_seq
          and c.palette <> h.palette
      ) as "otherBands"
    from table_heads h
    cross join lateral (
      select *
      from forecast_sets
      where table_id = h.table_id
        and cutoff_seq = any(h.open_sets || h.set_seq)
      order by cutoff_seq
    ) s
    where h.table_id = any(${ids}::integer[])`;
}

/** The forecasts of open sets that are settled. */
export function listSettled(sql: Queryable, ids: readonly number[]) {
  return sql<{ table_id: number; seqs: bigint[] }[]>`
    select h.table_id, array_agg(u.forecast_seq) as seqs
    from table_heads h
    cross join lateral (
      select *
      from score_sets
      where table_id = h.table_id
        and settled_seq > h.open_sets[1]
      order by settled_seq
    ) s
    cross join lateral unnest(s.forecast_seqs, s.cutoff_seqs) as u (forecast_seq, cutoff_seq)
    where h.table_id = any(${ids}::integer[])
      and u.cutoff_seq = any(h.open_sets)
    group by h.table_id`;
}
