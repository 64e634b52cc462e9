import type { Transaction } from "../../db/client.ts";
import type { IssuedForecast } from "../chain/chain.ts";
import type { PublishedForecast } from "./published-forecast.ts";

/** The database's time now, as it is hashed and stored: `2026-11-21T04:00:12.1234560Z`. */
export async function readClock(tx: Transaction): Promise<string> {
  const [row] = await tx<{ now: string }[]>`select utc_text(clock_timestamp()) as now`;
  if (row === undefined) throw new Error("expected the time from the database, got nothing");
  return row.now;
}

/** A forecast ready to be stored: what is hashed, and what it hangs on. */
export interface PreparedForecast extends IssuedForecast {
  tableId: number;
  cutoffSeq: bigint;
  prevHash: string;
  hash: string;
}

/** The database's word for a forecast that comes too late; see `refuse_late_forecasts`. */
const TOO_LATE = "RH002";

/**
 * Inserts forecasts inside a savepoint and moves their tables' chains. False where one of them came too late (a round
 * is there already, the pause is over, an answer is not read yet): then nothing of this call stands, and everything
 * else of the transaction does.
 * @throws the database's error on a forecast that says something untrue of itself, which is a bug.
 */
export async function saveForecasts(tx: Transaction, forecasts: readonly PreparedForecast[]): Promise<boolean> {
  try {
    await tx.savepoint((inner) => insertForecasts(inner, forecasts));
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === TOO_LATE) return false;
    throw error;
  }
}

async function insertForecasts(tx: Transaction, forecasts: readonly PreparedForecast[]): Promise<void> {
  await tx`
    with kept as (
      insert into forecasts (
        table_id, seq, forecast_id, model, feature, issued_at, issue_hour, cutoff_seq, cutoff_round_id, history_hash,
        target_round_id, horizon, p_ppm, base_ppm, prev_hash, hash
      )
      select
        table_id, seq, forecast_id, model, feature, issued_at, date_trunc('hour', issued_at, 'UTC'), cutoff_seq,
        cutoff_round_id, history_hash, target_round_id, horizon, p_ppm, base_ppm, prev_hash, hash
      from jsonb_to_recordset(${tx.json(forecasts.map(toRow))}) as x (
        table_id integer, seq bigint, forecast_id text, model text, feature text, issued_at timestamptz,
        cutoff_seq bigint, cutoff_round_id text, history_hash text, target_round_id text, horizon integer,
        p_ppm integer[], base_ppm integer[], prev_hash text, hash text
      )
      order by table_id, seq
      returning table_id, seq, model, feature, cutoff_seq, horizon, issued_at, issue_hour, hash
    ),
    waiting as (
      insert into open_forecasts (table_id, seq, model, feature, cutoff_seq, horizon, issue_hour)
      select table_id, seq, model, feature, cutoff_seq, horizon, issue_hour
      from kept
    ),
    head as (
      select distinct on (table_id) table_id, seq, cutoff_seq, issued_at, hash
      from kept
      order by table_id, seq desc
    )
    update tables t
    set
      forecast_seq = head.seq,
      forecast_hash = head.hash,
      first_forecast_at = coalesce(t.first_forecast_at, head.issued_at),
      first_forecast_after_seq = coalesce(t.first_forecast_after_seq, head.cutoff_seq)
    from head
    where t.id = head.table_id`;
}

function toRow(forecast: PreparedForecast) {
  return {
    table_id: forecast.tableId,
    seq: String(forecast.seq),
    forecast_id: forecast.forecastId,
    model: forecast.model,
    feature: forecast.feature,
    issued_at: forecast.issuedAt,
    cutoff_seq: String(forecast.cutoffSeq),
    cutoff_round_id: forecast.cutoffRoundId,
    history_hash: forecast.historyHash,
    target_round_id: forecast.targetRoundId,
    horizon: forecast.horizon,
    p_ppm: [...forecast.pPpm],
    base_ppm: [...forecast.basePpm],
    prev_hash: forecast.prevHash,
    hash: forecast.hash,
  };
}

/**
 * Shows each table's forecast to callers, or that none stands (`next_color` null) after its newest round, and the
 * windows that are open after it. What stands already after that round stays, and a table that never had a forecast
 * stays without.
 */
export async function publishForecasts(
  tx: Transaction,
  rows: readonly { tableId: number; forecast: PublishedForecast }[],
): Promise<void> {
  if (rows.length === 0) return;
  await tx`
    update published_now p
    set
      forecast = x.forecast,
      updated_at = clock_timestamp()
    from jsonb_to_recordset(${tx.json(rows.map(({ tableId, forecast }) => ({ table_id: tableId, forecast })))})
      as x (table_id integer, forecast jsonb)
    where p.table_id = x.table_id
      and (
        x.forecast -> 'next_color' <> 'null'::jsonb
        or (p.forecast ->> 'cutoff_seq')::bigint < (x.forecast ->> 'cutoff_seq')::bigint
      )`;
}
