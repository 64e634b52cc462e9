import type { Transaction } from "../db/client.ts";
import type { DueWindow } from "./judge.ts";
import type { DueForecastRow, TouchedHour } from "./score-store.ts";

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
      select *
      from forecasts
      where table_id = asked.table_id
        and model = asked.model
        and feature = asked.feature
      order by cutoff_seq desc
      limit 1
    ) f
    cross join lateral window_span(
      f.table_id, f.cutoff_seq, f.target_round_id, f.horizon, f.issued_at, asked.color, true
    ) span
    where span.settled_seq is null`;
}

/** A window that has ended and has no score yet. */
export type DueWindowRow = DueForecastRow & DueWindow;

/** Windows of these tables that wait for their score and have ended by now, in the order of the chains. */
export async function listDueWindows(
  tx: Transaction,
  tableIds: readonly number[],
  limit: number,
): Promise<DueWindowRow[]> {
  return tx<DueWindowRow[]>`
    select
      f.table_id as "tableId",
      f.seq,
      f.model,
      f.feature,
      utc_text(f.issue_hour) as "issueHour",
      utc_text(f.issued_at) as "issuedAt",
      f.p_ppm as "pPpm",
      f.base_ppm as "basePpm",
      span.settled_seq as "settledSeq",
      utc_text(span.requested_at) as "requestedAt",
      span.status,
      span.hit
    from open_forecasts o
    join forecasts f on f.table_id = o.table_id and f.seq = o.seq
    cross join lateral window_span(
      f.table_id, f.cutoff_seq, f.target_round_id, f.horizon, f.issued_at, split_part(f.feature, ':', 2), true
    ) span
    where o.table_id = any(${[...tableIds]}::integer[])
      and o.feature like 'window:%'
      and span.settled_seq is not null
    order by f.table_id, f.seq
    limit ${limit}`;
}

/** Hours of these tables in which a window was issued that waits and is not counted as pending yet. */
export async function listUncountedHours(tx: Transaction, tableIds: readonly number[]): Promise<TouchedHour[]> {
  return tx<TouchedHour[]>`
    select o.table_id as "tableId", o.model, o.feature, utc_text(o.issue_hour) as hour
    from open_forecasts o
    where o.table_id = any(${[...tableIds]}::integer[])
      and o.feature like 'window:%'
      and not exists (
        select
        from accuracy_hours h
        where h.table_id = o.table_id
          and h.model = o.model
          and h.feature = o.feature
          and h.hour = o.issue_hour
          and (h.sums -> 'last' ->> 'seq')::bigint >= o.seq
      )`;
}
