import type { Transaction } from "../../db/client.ts";

/** A feature of a table, and the color it waits for. */
export interface AskedWindow {
  tableId: number;
  model: string;
  feature: string;
  color: string;
}

/** A window that has not ended yet. */
export interface OpenWindow {
  tableId: number;
  feature: string;
  forecastId: string;
  issuedAt: string;
  cutoffRoundId: string;
  horizon: number;
  pPpm: readonly number[];
  basePpm: readonly number[];
  hash: string;
  /** On-time rounds since, and whether the color was among them. */
  seen: number;
  hit: boolean;
}

/** Of each of these features, the newest window where it has not ended. Needs the tables' locks to stay true. */
export async function listOpenWindows(tx: Transaction, asked: readonly AskedWindow[]): Promise<OpenWindow[]> {
  if (asked.length === 0) return [];
  return tx<OpenWindow[]>`
    select
      f.table_id as "tableId",
      f.feature,
      f.forecast_id as "forecastId",
      utc_text(f.issued_at) as "issuedAt",
      f.cutoff_round_id as "cutoffRoundId",
      f.horizon,
      f.p_ppm as "pPpm",
      f.base_ppm as "basePpm",
      f.hash,
      span.seen,
      span.hit
    from unnest(
      ${asked.map(({ tableId }) => tableId)}::integer[],
      ${asked.map(({ model }) => model)}::text[],
      ${asked.map(({ feature }) => feature)}::text[],
      ${asked.map(({ color }) => color)}::text[]
    ) as asked (table_id, model, feature, color)
    cross join lateral (
      select newest.*
      from (
        select *
        from forecasts
        where table_id = asked.table_id
          and model = asked.model
          and feature = asked.feature
        order by cutoff_seq desc
        limit 1
      ) newest
      -- with all its rounds there it has ended, whatever became of it
      where not exists (
        select
        from (
          select
          from rounds
          where table_id = newest.table_id
            and seq > newest.cutoff_seq
            and not late
          order by seq
          offset newest.horizon - 1
          limit 1
        ) last
      )
      offset 0
    ) f
    cross join lateral window_span(
      f.table_id, f.cutoff_seq, f.target_round_id, f.horizon, f.issued_at, asked.color, true
    ) span
    where span.settled_seq is null`;
}
