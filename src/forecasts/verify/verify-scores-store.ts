import type { Transaction } from "../../db/client.ts";
import type { Period } from "../accuracy/accuracy-store.ts";
import type { TouchedHour } from "../score/score-store.ts";

/** A score as it is stored, every figure of it. */
export interface StoredScore {
  forecastSeq: bigint;
  rev: number;
  model: string;
  feature: string;
  hourMatches: boolean;
  issuedAt: string;
  status: string;
  settledSeq: bigint | null;
  targetRequestedAt: string | null;
  outcome: number | null;
  hit: boolean | null;
  p: number | null;
  baseP: number | null;
  brier: bigint | null;
  brierBase: bigint | null;
  rps: bigint | null;
  rpsBase: bigint | null;
  ll: bigint | null;
  llBase: bigint | null;
}

/** Scores of a part of a table's chain, by forecast and rev. */
export async function listStoredScores(
  tx: Transaction,
  tableId: number,
  part: { afterSeq: bigint; upToSeq: bigint },
): Promise<StoredScore[]> {
  return tx<StoredScore[]>`
    select
      forecast_seq as "forecastSeq",
      rev, model, feature,
      issue_hour = date_trunc('hour', issued_at, 'UTC') as "hourMatches",
      utc_text(issued_at) as "issuedAt",
      status,
      settled_seq as "settledSeq",
      utc_text(target_requested_at) as "targetRequestedAt",
      outcome, hit, p,
      base_p as "baseP",
      brier,
      brier_base as "brierBase",
      rps,
      rps_base as "rpsBase",
      ll,
      ll_base as "llBase"
    from scores
    where table_id = ${tableId}
      and forecast_seq > ${part.afterSeq}
      and forecast_seq <= ${part.upToSeq}
    order by forecast_seq, rev`;
}

/** The newest row of an hour, how many revs it has, and how its rows stand. */
export interface StoredHour extends TouchedHour {
  rev: number;
  revs: number;
  final: boolean;
  over: boolean;
  sums: unknown;
  references: unknown;
  updatedAt: string;
}

/** Hour rows of a table, the newest of each hour, from after one on; null for the first. */
export async function listStoredHours(
  tx: Transaction,
  tableId: number,
  after: TouchedHour | null,
  limit: number,
): Promise<StoredHour[]> {
  return tx<StoredHour[]>`
    select
      table_id as "tableId", model, feature,
      utc_text(hour) as hour,
      rev, revs, final,
      hour + interval '1 hour' <= now() as over,
      sums,
      reference_sums as "references",
      utc_text(updated_at) as "updatedAt"
    from (
      select
        *,
        count(*) over hours::integer as revs,
        row_number() over (partition by model, feature, hour order by rev desc) as place
      from accuracy_hours
      where table_id = ${tableId}
        ${after === null ? tx`` : tx`and (model, feature, hour) > (${after.model}, ${after.feature}, ${after.hour})`}
      window hours as (partition by model, feature, hour)
    ) h
    where place = 1
    order by model, feature, h.hour
    limit ${limit}`;
}

/** A series beside its first hour as the hour rows have it, and the periods that are published of it. */
export interface StoredSeries {
  model: string;
  feature: string;
  /** Null where the row of the series is missing. */
  firstHour: string | null;
  firstHourFound: string | null;
  published: boolean;
  periods: Period[];
}

/** The series of a table, from their own rows, the hour rows and the published ones. */
export async function listStoredSeries(tx: Transaction, tableId: number): Promise<StoredSeries[]> {
  return tx<StoredSeries[]>`
    select
      model, feature,
      utc_text(s.first_hour) as "firstHour",
      utc_text(h.first_hour) as "firstHourFound",
      coalesce(s.published_at is not null, false) as published,
      coalesce(p.periods, '{}') as periods
    from (select * from accuracy_series where table_id = ${tableId}) s
    full join (
      select model, feature, min(hour) as first_hour
      from accuracy_hours
      where table_id = ${tableId}
      group by model, feature
    ) h using (model, feature)
    full join (
      select model, feature, array_agg(period order by period) as periods
      from published_accuracy
      where table_id = ${tableId}
      group by model, feature
    ) p using (model, feature)
    order by model, feature`;
}

/** A published row, and the span its period has by its end. */
export interface StoredPeriod {
  tableId: number;
  model: string;
  feature: string;
  period: Period;
  start: string;
  end: string;
  /** Where the period begins that ends there; null for all. */
  startByEnd: string | null;
  updatedAt: string;
  sums: unknown;
  references: unknown;
}

/** The published rows of a table. */
export async function listStoredPeriods(tx: Transaction, tableId: number): Promise<StoredPeriod[]> {
  return tx<StoredPeriod[]>`
    select
      table_id as "tableId", model, feature, period,
      utc_text(period_start) as start,
      utc_text(period_end) as "end",
      utc_text(
        period_end - case period when '24h' then 1 when '7d' then 7 when '30d' then 30 when '90d' then 90 end
          * interval '24 hours'
      ) as "startByEnd",
      utc_text(updated_at) as "updatedAt",
      sums,
      reference_sums as "references"
    from published_accuracy
    where table_id = ${tableId}
    order by model, feature, period`;
}
