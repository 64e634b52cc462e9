import type { Reader } from "../../db/reader.ts";

/** A forecast as the export shows it: every field is text, empty where there is none; the hash covers the first twelve. */
export interface ExportedForecast {
  seq: string;
  forecast_id: string;
  table: string;
  model: string;
  feature: string;
  issued_at: string;
  cutoff_round_id: string;
  history_hash: string;
  target_round_id: string;
  horizon: string;
  /** By color in color order with | between, or one number for a window. */
  p_ppm: string;
  base_ppm: string;
  /** `open`, `scored`, or the kind of void. */
  status: string;
  /** The color that came; of a window 1 or 0. */
  outcome: string;
  scored_at: string;
  prev_hash: string;
  hash: string;
}

/**
 * The forecasts of a table with a seq from `afterSeq` on (exclusive), in the order of the chain, at most `limit`, each
 * with what became of it by now.
 *
 * Pages for the same reasons as the export of rounds: forecasts are insert-only. What became of them may be a moment
 * younger on a later page.
 */
export async function listForecastsForExport(
  read: Reader,
  tableId: number,
  page: { afterSeq: string; limit: number },
): Promise<ExportedForecast[]> {
  return read<ExportedForecast[]>`
    select
      f.seq::text,
      f.forecast_id,
      t.house_id || '/' || t.game || '/' || t.market as "table",
      f.model,
      f.feature,
      utc_text(f.issued_at) as issued_at,
      f.cutoff_round_id,
      f.history_hash,
      coalesce(f.target_round_id, '') as target_round_id,
      f.horizon::text,
      array_to_string(f.p_ppm, '|') as p_ppm,
      array_to_string(f.base_ppm, '|') as base_ppm,
      coalesce(s.status, 'open') as status,
      coalesce(case f.feature when 'next_color' then t.colors -> s.outcome ->> 'name' else s.outcome::text end, '')
        as outcome,
      coalesce(utc_text(s.scored_at), '') as scored_at,
      f.prev_hash,
      f.hash
    from forecasts f
    join tables t on t.id = f.table_id
    left join lateral (
      select status, outcome, scored_at
      from scores
      where table_id = f.table_id
        and forecast_seq = f.seq
      order by rev desc
      limit 1
    ) s on true
    where f.table_id = ${tableId}
      and f.seq > ${page.afterSeq}
    order by f.seq
    limit ${page.limit}`;
}
