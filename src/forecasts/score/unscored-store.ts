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

/** Tables, or one table, with a forecast that ended `minutes` (5 by default) ago and has no score. */
export async function listUnscored(
  sql: Queryable,
  { tableId, minutes = UNSCORED_MINUTES }: { tableId?: number | undefined; minutes?: number | undefined } = {},
): Promise<Unscored[]> {
  return sql<Unscored[]>`
    select t.house_id || '/' || t.game || '/' || t.market as "table",
      format('f%s-%s', h.table_id, oldest.forecast_seq) as "forecastId", utc_text(r.received_at) as since
    from table_heads h
    join tables t on t.id = h.table_id
    cross join lateral (
      select s.first_seq + f.place - 1 as forecast_seq, s.cutoff_seq, s.cutoff_ordinal + f.horizon as end_ordinal
      from forecast_sets s
      cross join lateral unnest(s.horizons) with ordinality as f (horizon, place)
      left join (
        select unnest(forecast_seqs) as forecast_seq
        from score_sets
        where table_id = h.table_id
          and settled_seq > h.open_sets[1]
      ) settled on settled.forecast_seq = s.first_seq + f.place - 1
      where s.table_id = h.table_id
        and s.cutoff_seq = any (h.open_sets)
        and s.cutoff_ordinal + f.horizon <= h.last_ordinal
        and settled.forecast_seq is null
      order by end_ordinal, forecast_seq
      limit 1
    ) oldest
    cross join lateral (
      select received_at
      from rounds
      where table_id = h.table_id
        and seq > oldest.cutoff_seq
        and ordinal = oldest.end_ordinal
      order by seq
      limit 1
    ) r
    where h.has_ended
      and r.received_at <= now() - ${minutes} * interval '1 minute'
      and (${tableId ?? null}::integer is null or h.table_id = ${tableId ?? null}::integer)
    order by h.table_id`;
}

/** A disputed round that scores do not reflect. */
export interface Unapplied {
  roundId: string;
  /** When the second result was received, or the round was revised. */
  since: string;
}

/** The oldest dispute of a table that scores do not reflect `minutes` (5 by default) later; null if there is none. */
export async function findUnapplied(
  sql: Queryable,
  { tableId, minutes = UNSCORED_MINUTES }: { tableId: number; minutes?: number | undefined },
): Promise<Unapplied | null> {
  const [oldest] = await sql<Unapplied[]>`
    select round_id as "roundId", utc_text(seen_at) as since
    from disputed_rounds
    where table_id = ${tableId}
      and scores_voided_at is null
      and seen_at <= now() - ${minutes} * interval '1 minute'
    order by seen_at
    limit 1`;
  return oldest ?? null;
}
