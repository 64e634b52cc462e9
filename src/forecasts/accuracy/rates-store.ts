import { voidsOf } from "./figures/sums.ts";
import type { Queryable } from "../../db/client.ts";
import { featureSums } from "./published.ts";
import { addSums, decodeSums, type SumVector } from "./sum-vector.ts";

/** Results of the forecasts of an hour or a day; sums in ppm. */
export interface RateSums {
  at: string;
  n: bigint;
  hits: bigint;
  sumP: bigint;
  sumPBase: bigint;
  voids: bigint;
  pending: bigint;
  notIssued: bigint;
  receivedRounds: bigint;
}

/** Query of rates: these tables together, from `start` to before `end` (ISO 8601). */
export interface RatesQuery {
  tableIds: readonly number[];
  model: string;
  feature: string;
  start: string;
  end: string;
  by: "hour" | "day";
}

/** Rows read for one plot: about 0.3 s. */
const MOST_ROWS = 4_000;

/**
 * Results of the forecasts of a feature by UTC hour or day of issue, oldest first; hours without a forecast are left out.
 * `from` is later than `start` when the row limit cut the range.
 */
export async function listHitRates(
  sql: Queryable,
  { tableIds, model, feature, start, end, by }: RatesQuery,
): Promise<{ from: string; rates: RateSums[] }> {
  const most = Math.max(1, Math.floor(MOST_ROWS / Math.max(1, tableIds.length)));
  const ofModel = sql`${model} in (model, split_part(model, '-', 1))`;
  const rows = await sql<{ from: string; at: string; code: number; sums: Uint8Array }[]>`
    with span as (
      select greatest(
        ${start}::text::timestamptz,
        date_trunc(${by}, least(${end}::text::timestamptz, now()) - ${most} * (${`1 ${by}`}::text)::interval, 'UTC')
      ) as starts
    ),
    parts as (
      select table_id, hour as at, model, feature, sums
      from accuracy_hours, span
      where ${by}::text = 'hour'
        and table_id = any(${[...tableIds]}::integer[])
        and ${ofModel}
        and hour >= span.starts
        and hour < ${end}::text::timestamptz
      union all
      select table_id, day::timestamp at time zone 'UTC', model, feature, sums
      from accuracy_days, span
      where ${by}::text = 'day'
        and table_id = any(${[...tableIds]}::integer[])
        and ${ofModel}
        and day >= (span.starts at time zone 'UTC')::date
        and day < (${end}::text::timestamptz at time zone 'UTC')::date
      union all
      -- hours that are in no day yet
      select h.table_id, date_trunc('day', h.hour, 'UTC'), h.model, h.feature, h.sums
      from accuracy_marks m
      join accuracy_hours h on h.table_id = m.table_id and h.hour >= m.hour - interval '1 hour'
      where ${by}::text = 'day'
        and m.table_id = any(${[...tableIds]}::integer[])
        and ${ofModel}
        and h.hour < ${end}::text::timestamptz
    )
    select
      (select utc_text(starts) from span) as "from",
      utc_text(x.at) as at,
      x.feature as code,
      x.sums
    from parts x
    join accuracy_models a on a.table_id = x.table_id and a.model = x.model
    join palettes p on p.id = a.palette
    where feature_name(x.feature, p.bands) = ${feature}
    order by x.at`;
  const rates = [...Map.groupBy(rows, ({ at }) => at)].map(([at, own]) => {
    const sums: SumVector = new Map();
    for (const row of own) addSums(sums, decodeSums(row.sums));
    return rateOf(at, featureSums(own[0]?.code ?? 0, sums).sums);
  });
  return { from: rows[0]?.from ?? start, rates };
}

function rateOf(at: string, sums: ReturnType<typeof featureSums>["sums"]): RateSums {
  const { n, hits, sumP, sumPBase, pending, notIssued, receivedRounds } = sums;
  const voids = voidsOf(sums);
  return { at, n, hits, sumP, sumPBase, voids, pending, notIssued, receivedRounds };
}
