import type { Transaction } from "../../db/client.ts";

/** The features of a table whose windows are asked for. */
export interface AskedWindows {
  tableId: number;
  model: string;
  features: readonly string[];
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

/**
 * The windows of these features that have not ended, by what waits for its score; the database goes by the forecasts
 * themselves when the next one is issued. Needs the tables' locks to stay true.
 */
export async function listOpenWindows(tx: Transaction, asked: readonly AskedWindows[]): Promise<OpenWindow[]> {
  if (asked.length === 0) return [];
  const rows = asked.map(({ tableId, model, features }) => ({ table_id: tableId, model, features: [...features] }));
  // what waits for its score, less what has ended; of a table at once, which costs little more than one of its windows
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
    from jsonb_to_recordset(${tx.json(rows)}) as asked (table_id integer, model text, features text[])
    join tables t on t.id = asked.table_id
    cross join lateral (
      select array(
        select seq
        from open_forecasts
        where table_id = asked.table_id
          and model = asked.model
          and feature = any(asked.features)
        order by seq
      ) as seqs
      offset 0
    ) waiting
    cross join lateral (
      select *
      from forecasts waits
      where waits.table_id = asked.table_id
        and waits.seq = any(waiting.seqs)
        -- with all its rounds there it has ended, whatever became of it
        and (
          waits.cutoff_seq + waits.horizon > t.last_seq
          or not exists (
            select
            from (
              select
              from rounds
              where table_id = waits.table_id
                and seq > waits.cutoff_seq
                and not late
              order by seq
              offset waits.horizon - 1
              limit 1
            ) last
          )
        )
      order by waits.seq
      offset 0
    ) f
    cross join lateral window_span(
      f.table_id, f.cutoff_seq, f.target_round_id, f.horizon, f.issued_at, split_part(f.feature, ':', 2), true
    ) span
    where span.settled_seq is null`;
}
