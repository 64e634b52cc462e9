import type { Queryable } from "../../db/client.ts";

/** An ended forecast without a score is overdue after this time. */
const UNSCORED_MINUTES = 5;

/** A table whose ended forecasts are not scored. */
export interface Unscored {
  table: string;
  /** The oldest of them, and when the round that ended it was received. */
  forecastId: string;
  since: string;
}

/** Tables, or one table, with a next-color forecast that ended `minutes` (5 by default) ago and has no score. */
export async function listUnscored(
  sql: Queryable,
  { tableId, minutes = UNSCORED_MINUTES }: { tableId?: number | undefined; minutes?: number | undefined } = {},
): Promise<Unscored[]> {
  return sql<Unscored[]>`
    select t.house_id || '/' || t.game || '/' || t.market as "table", format('f%s-%s', h.table_id, oldest.first_seq) as "forecastId",
      utc_text(oldest.received_at) as since
    from table_heads h
    join tables t on t.id = h.table_id
    cross join lateral (
      select r.received_at, s.first_seq
      from unnest(h.open_sets) as open (cutoff_seq)
      join forecast_sets s on s.table_id = h.table_id and s.cutoff_seq = open.cutoff_seq
      cross join lateral (
        select received_at
        from rounds
        where table_id = h.table_id
          and seq > s.cutoff_seq
          and ordinal is not null
        order by seq
        limit 1
      ) r
      where not exists (
        select
        from score_sets o
        where o.table_id = s.table_id
          and o.settled_seq > s.cutoff_seq
          and s.first_seq = any (o.forecast_seqs)
      )
      order by s.cutoff_seq
      limit 1
    ) oldest
    where h.has_ended
      and oldest.received_at <= now() - ${minutes} * interval '1 minute'
      and (${tableId ?? null}::integer is null or h.table_id = ${tableId ?? null}::integer)
    order by h.table_id`;
}
