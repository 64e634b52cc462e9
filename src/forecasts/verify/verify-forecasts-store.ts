import type { Transaction } from "../../db/client.ts";
import type { SpanEnd } from "../score/judge.ts";

/** A forecast beside the facts it rests on and is judged by. */
export interface StoredForecast {
  seq: bigint;
  forecastId: string;
  model: string;
  feature: string;
  issuedAt: string;
  issuedAtMicros: bigint;
  issueHour: string;
  hourMatches: boolean;
  cutoffSeq: bigint;
  cutoffRoundId: string;
  historyHash: string;
  targetRoundId: string | null;
  horizon: number;
  pPpm: number[];
  basePpm: number[];
  prevHash: string;
  hash: string;
  /** It waits for its round. */
  open: boolean;
  /** The round with its cutoff's seq. */
  cutoff: {
    roundId: string;
    historyHash: string;
    late: boolean;
    source: string;
    absentAtMicros: string | null;
  } | null;
  /** The first on-time round after its cutoff. */
  target: {
    seq: string;
    roundId: string;
    color: string;
    afterGap: boolean;
    requestedAt: string | null;
    requestedAtMicros: string | null;
    /** It came with another result or was revised, and its scores know. */
    conflictsApplied: boolean;
  } | null;
  /** Of a window, how its rounds alone end it, and those of them that came with another result; else null. */
  span: StoredSpan | null;
}

/** The rounds of a window as `window_span` tells of them. */
export interface StoredSpan {
  status: SpanEnd | "open";
  settledSeq: string | null;
  hit: boolean;
  requestedAt: string | null;
  conflicts: SpanConflict[];
}

/** A round of a window, up to its end, that came with another result or that a person revised. */
export interface SpanConflict {
  seq: string;
  /** When that was first seen, in microseconds since the epoch. */
  seenAtMicros: string;
  /** Whoever scores knows of it. */
  applied: boolean;
  /** The earliest request of a round of the window up to this one. */
  requestedAt: string | null;
}

/** Forecasts of a table after a place in its chain, in order, each with its cutoff and its target. */
export async function listStoredForecasts(
  tx: Transaction,
  tableId: number,
  afterSeq: bigint,
  limit: number,
): Promise<StoredForecast[]> {
  return tx<StoredForecast[]>`
    select
      f.seq,
      f.forecast_id as "forecastId",
      f.model,
      f.feature,
      utc_text(f.issued_at) as "issuedAt",
      (extract(epoch from f.issued_at) * 1000000)::bigint as "issuedAtMicros",
      utc_text(f.issue_hour) as "issueHour",
      f.issue_hour = date_trunc('hour', f.issued_at, 'UTC') as "hourMatches",
      f.cutoff_seq as "cutoffSeq",
      f.cutoff_round_id as "cutoffRoundId",
      f.history_hash as "historyHash",
      f.target_round_id as "targetRoundId",
      f.horizon,
      f.p_ppm as "pPpm",
      f.base_ppm as "basePpm",
      f.prev_hash as "prevHash",
      f.hash,
      exists (select from open_forecasts o where o.table_id = f.table_id and o.seq = f.seq) as open,
      (
        select jsonb_build_object(
          'roundId', r.round_id,
          'historyHash', r.history_hash,
          'late', r.late,
          'source', r.source,
          'absentAtMicros', ((extract(epoch from r.absent_at) * 1000000)::bigint)::text
        )
        from rounds r
        where r.table_id = f.table_id
          and r.seq = f.cutoff_seq
      ) as cutoff,
      (
        select jsonb_build_object(
          'seq', r.seq::text,
          'roundId', r.round_id,
          'color', r.color,
          'afterGap', r.after_gap,
          'requestedAt', utc_text(r.requested_at),
          'requestedAtMicros', ((extract(epoch from r.requested_at) * 1000000)::bigint)::text,
          'conflictsApplied', exists (
            select
            from disputed_rounds d
            where d.table_id = r.table_id
              and d.round_id = r.round_id
              and d.scores_voided_at is not null
          )
        )
        from rounds r
        where r.table_id = f.table_id
          and r.seq > f.cutoff_seq
          and not r.late
        order by r.seq
        limit 1
      ) as target,
      case when f.feature like 'window:%' then (${spanOf(tx)}) end as span
    from forecasts f
    where f.table_id = ${tableId}
      and f.seq > ${afterSeq}
    order by f.seq
    limit ${limit}`;
}

/** The span of the window `f`. Its conflicts are told apart from its end: some of them came after it was scored. */
function spanOf(tx: Transaction) {
  return tx`
    select jsonb_build_object(
      'status', span.status,
      'settledSeq', span.settled_seq::text,
      'hit', span.hit,
      'requestedAt', utc_text(span.requested_at),
      'conflicts', coalesce(
        (
          select jsonb_agg(
            jsonb_build_object(
              'seq', r.seq::text,
              'seenAtMicros', ((extract(epoch from d.seen_at) * 1000000)::bigint)::text,
              'applied', d.scores_voided_at is not null,
              'requestedAt', utc_text(r.earliest)
            )
            order by r.seq, d.seen_at
          )
          from (
            select seq, round_id, min(requested_at) over (order by seq) as earliest
            from rounds
            where table_id = f.table_id
              and seq > f.cutoff_seq
              and (span.settled_seq is null or seq <= span.settled_seq)
              and not late
            order by seq
            limit f.horizon
          ) r
          join disputed_rounds d on d.table_id = f.table_id and d.round_id = r.round_id
        ),
        '[]'
      )
    )
    from window_span(
      f.table_id, f.cutoff_seq, f.target_round_id, f.horizon, f.issued_at, split_part(f.feature, ':', 2), false
    ) span`;
}

/** A state that a promotion put in the place of the one before, at a seq. */
export interface StoredPromotion {
  model: string;
  toSeq: bigint;
  state: Buffer;
  at: string;
}

/** The promotions of a table, oldest first. */
export async function listPromotions(tx: Transaction, tableId: number): Promise<StoredPromotion[]> {
  return tx<StoredPromotion[]>`
    select model, to_seq as "toSeq", state, utc_text(created_at) as at
    from calibrations
    where table_id = ${tableId}
      and kind = 'promoted'
    order by to_seq, id`;
}

/** A forecast that is said to wait for its score and lies outside of the chain; null where there is none. */
export async function findStrayOpen(tx: Transaction, tableId: number, lastSeq: bigint): Promise<bigint | null> {
  const [row] = await tx<{ seq: bigint }[]>`
    select seq
    from open_forecasts
    where table_id = ${tableId}
      and (seq < 1 or seq > ${lastSeq})
    order by seq
    limit 1`;
  return row?.seq ?? null;
}
