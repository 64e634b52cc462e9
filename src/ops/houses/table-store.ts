import type { Queryable } from "../../db/client.ts";
import { rejectedFrom } from "../../forecasts/readings/audit-store.ts";

/** A round as it is listed. */
export interface ListedRound {
  seq: string;
  roundId: string;
  hundredths: string;
  color: string;
  source: string;
  /** Of its response, to the microsecond. */
  receivedAt: string;
  occurredAt: Date | null;
  late: boolean;
  afterGap: boolean;
  verified: boolean | null;
  hasPayload: boolean;
}

/** A forecast and what became of it. */
export interface ListedForecast {
  seq: string;
  feature: string;
  model: string;
  issuedAt: Date;
  cutoffRoundId: string;
  targetRoundId: string | null;
  horizon: number;
  stated: number[];
  /** Null while it waits for its round. */
  status: string | null;
  hit: boolean | null;
}

/** What a table's rounds proved of its house by the end of an hour. */
export interface AuditHour {
  hour: Date;
  rounds: number;
  tested: number;
  edgePpm: number | null;
  lnE: number;
  lnEMax: number;
  /** The greatest evidence is enough to reject the declared edge. */
  isRejected: boolean;
  proven: number;
  missing: number | null;
  gaps: number;
  proofsFailed: number;
  conflicts: number;
}

/** The newest rounds in the order in which they came in, newest first. */
export async function listNewestRounds(sql: Queryable, tableId: number, limit: number): Promise<ListedRound[]> {
  return sql<ListedRound[]>`
    select
      seq::text as seq,
      round_id as "roundId",
      hundredths::text as hundredths,
      color,
      source,
      utc_text(received_at) as "receivedAt",
      occurred_at as "occurredAt",
      late,
      after_gap as "afterGap",
      verified,
      source in ('poll', 'history') as "hasPayload"
    from named_rounds
    where table_id = ${tableId}
    order by named_rounds.seq desc
    limit ${limit}`;
}

/** The newest forecasts, newest first. */
export async function listNewestForecasts(sql: Queryable, tableId: number, limit: number): Promise<ListedForecast[]> {
  return sql<ListedForecast[]>`
    with sets as materialized (
      select min(cutoff_seq) as oldest
      from (
        select cutoff_seq from forecast_sets where table_id = ${tableId} order by cutoff_seq desc limit ${limit}
      ) newest
    )
    select
      f.seq::text as seq,
      f.feature,
      f.model,
      f.issued_at as "issuedAt",
      f.cutoff_round_id as "cutoffRoundId",
      f.target_round_id as "targetRoundId",
      f.horizon,
      f.p_ppm as stated,
      case s.status when 'void' then 'void: ' || s.reason else s.status end as status,
      s.outcome = case f.feature
        when 'next_color' then array_position(f.p_ppm, (select max(ppm) from unnest(f.p_ppm) as ppm)) - 1
        else 1
      end as hit
    from forecasts f
    left join lateral (
      select status, reason, outcome
      from scores
      where table_id = f.table_id
        and settled_seq > f.cutoff_seq
        and forecast_seq = f.seq
      order by rev desc
      limit 1
    ) s on true
    where f.table_id = ${tableId}
      and f.cutoff_seq >= (select oldest from sets)
    order by f.seq desc
    limit ${limit}`;
}

/** The newest hours of a table's audit, newest first. */
export async function listAuditHours(sql: Queryable, tableId: number, limit: number): Promise<AuditHour[]> {
  return sql<AuditHour[]>`
    select
      hour,
      rounds::float8 as rounds,
      tested::float8 as tested,
      edge_ppm as "edgePpm",
      ln_e::float8 as "lnE",
      ln_e_max::float8 as "lnEMax",
      ln_e_max >= ${rejectedFrom(sql)} as "isRejected",
      proven::float8 as proven,
      missing::float8 as missing,
      gaps::float8 as gaps,
      proofs_failed::float8 as "proofsFailed",
      conflicts::float8 as conflicts
    from house_audits
    where table_id = ${tableId}
    order by house_audits.hour desc
    limit ${limit}`;
}
