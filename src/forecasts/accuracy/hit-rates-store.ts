import type { Queryable } from "../../db/client.ts";

/** Hour rows that are read for one plot: some 0.3 s where each is a few thousand characters. */
const MOST_HOURS = 20_000;

/** What became of the forecasts of an hour or a day; sums in ppm. */
export interface RateSums {
  at: string;
  n: bigint;
  hits: bigint;
  sumP: bigint;
  sumPBase: bigint;
  voids: bigint;
  pending: bigint;
  notIssued: bigint;
  onTimeRounds: bigint;
}

/** What rates are asked for: of these tables together, from `start` to before `end` (ISO 8601). */
export interface AskedRates {
  tableIds: readonly number[];
  model: string;
  feature: string;
  start: string;
  end: string;
  by: "hour" | "day";
}

/**
 * How the forecasts of a feature did, by the UTC hour or day in which they were issued, oldest first; hours without a
 * forecast are not in it. `from` is later than `start` where there is more than one plot may read.
 */
export async function listHitRates(
  sql: Queryable,
  { tableIds, model, feature, start, end, by }: AskedRates,
): Promise<{ from: string; rates: RateSums[] }> {
  const hours = Math.floor(MOST_HOURS / Math.max(1, tableIds.length));
  const rows = await sql<(RateSums & { from: string })[]>`
    with span as (
      select greatest(
        ${start}::text::timestamptz,
        date_trunc(${by}, least(${end}::text::timestamptz, now()) - ${hours} * interval '1 hour', 'UTC')
      ) as starts
    ),
    newest as (
      select distinct on (h.table_id, h.hour) h.hour, h.sums -> 'counts' as counts
      from accuracy_hours h, span
      where h.table_id = any(${[...tableIds]}::integer[])
        and h.model = ${model}
        and h.feature = ${feature}
        and h.hour >= span.starts
        and h.hour < ${end}::text::timestamptz
      order by h.table_id, h.hour, h.rev desc
    )
    select
      utc_text(date_trunc(${by}, hour, 'UTC')) as at,
      sum((counts ->> 'n')::bigint)::bigint as n,
      sum((counts ->> 'hits')::bigint)::bigint as hits,
      sum((counts ->> 'sum_p')::bigint)::bigint as "sumP",
      sum((counts ->> 'sum_p_base')::bigint)::bigint as "sumPBase",
      sum(
        (counts ->> 'void_gap')::bigint + (counts ->> 'void_house')::bigint + (counts ->> 'void_quarantine')::bigint
          + (counts ->> 'void_late')::bigint
      )::bigint as voids,
      sum((counts ->> 'pending')::bigint)::bigint as pending,
      sum((counts ->> 'not_issued')::bigint)::bigint as "notIssued",
      sum((counts ->> 'on_time_rounds')::bigint)::bigint as "onTimeRounds",
      (select utc_text(starts) from span) as "from"
    from newest
    group by 1
    order by 1`;
  const rates = rows.map((row) => {
    const { from: _, ...rest } = row;
    return rest;
  });
  return { from: rows[0]?.from ?? start, rates };
}
