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

/** Tables with a forecast whose last round was received `minutes` ago and that has no score. */
export async function listUnscored(
  sql: Queryable,
  { minutes = UNSCORED_MINUTES }: { minutes?: number } = {},
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
    order by h.table_id`;
}

/** A disputed round that scores do not reflect. */
export interface Unapplied {
  roundId: string;
  /** When the second result was received, or the round was revised. */
  since: string;
}

/** What a check allows: work that is due may be undone for `minutes` (5 by default) before `asOf`, the time of the data. */
export interface Grace {
  asOf: string;
  minutes?: number | undefined;
}

/** When a round was received, if that is longer ago than the grace; else null. */
export async function findOverdue(
  sql: Queryable,
  { tableId, seq }: { tableId: number; seq: bigint },
  { asOf, minutes = UNSCORED_MINUTES }: Grace,
): Promise<string | null> {
  const [row] = await sql<{ since: string }[]>`
    select utc_text(received_at) as since
    from rounds
    where table_id = ${tableId}
      and seq = ${String(seq)}::bigint
      and received_at <= ${asOf}::timestamptz - ${minutes} * interval '1 minute'`;
  return row?.since ?? null;
}

/** The oldest dispute of a table that scores do not reflect after the grace; null if there is none. */
export async function findUnapplied(
  sql: Queryable,
  tableId: number,
  { asOf, minutes = UNSCORED_MINUTES }: Grace,
): Promise<Unapplied | null> {
  const [oldest] = await sql<Unapplied[]>`
    select round_id as "roundId", utc_text(seen_at) as since
    from disputed_rounds
    where table_id = ${tableId}
      and scores_voided_at is null
      and seen_at <= ${asOf}::timestamptz - ${minutes} * interval '1 minute'
    order by seen_at
    limit 1`;
  return oldest ?? null;
}
