import type { Sql, Transaction } from "../../db/client.ts";
import type { Fairness } from "../../houses/fairness/settings.ts";
import type { Period } from "../accuracy/accuracy-store.ts";
import { K7_1 } from "../model/parameters.ts";
import type { SpanEnd } from "../score/judge.ts";
import type { TouchedHour } from "../score/score-store.ts";
import type { Band } from "../model/table-model.ts";

/** Opens one unchanging view of the database: everything checked inside belongs to the same moment. */
export async function withSnapshot<Result>(sql: Sql, check: (tx: Transaction) => Promise<Result>): Promise<Result> {
  return (await sql.begin("isolation level repeatable read read only", check)) as Result;
}

/** A table as it is verified. */
export interface VerifiedTable {
  id: number;
  /** `house/game/market`. */
  name: string;
  bands: Band[];
  consecutive: boolean;
  fairness: Fairness | null;
  adapter: string;
  feed: { scale?: number; instant?: (string | number)[] };
  /** What the table says of its chains: where they end, and where the forecasts began. */
  lastSeq: bigint;
  historyHash: string;
  forecastSeq: bigint;
  forecastHash: string;
  revisionHash: string;
  firstForecastAfterSeq: bigint | null;
  /** Rounds up to this seq are counted in the hour rows; null before the first score. */
  summedSeq: bigint | null;
  /** What the house declares, null where it declares nothing. */
  edge: number | null;
  /** The first calibration's or else the live state: it says with which bands and edge the table began. */
  state: Buffer | null;
}

/** The tables to verify: one where an id is given, else all. */
export async function listTablesToVerify(tx: Transaction, tableId: number | undefined): Promise<VerifiedTable[]> {
  return tx<VerifiedTable[]>`
    select
      t.id,
      t.house_id || '/' || t.game || '/' || t.market as name,
      t.colors as bands,
      t.round_ids = 'consecutive' as consecutive,
      t.settings -> 'fairness' as fairness,
      coalesce(t.settings ->> 'adapter', 'json') as adapter,
      coalesce(t.settings -> 'feed', '{}') as feed,
      t.last_seq as "lastSeq",
      t.history_hash as "historyHash",
      t.forecast_seq as "forecastSeq",
      t.forecast_hash as "forecastHash",
      t.revision_hash as "revisionHash",
      t.first_forecast_after_seq as "firstForecastAfterSeq",
      m.seq as "summedSeq",
      (t.settings ->> 'house_edge')::float8 as edge,
      coalesce(
        (
          select c.state
          from calibrations c
          where c.table_id = t.id
            and c.model = ${K7_1.name}
            and c.kind = 'rolling'
          order by c.id
          limit 1
        ),
        (select s.state from model_states s where s.table_id = t.id and s.model = ${K7_1.name})
      ) as state
    from tables t
    left join accuracy_marks m on m.table_id = t.id
    ${tableId === undefined ? tx`` : tx`where t.id = ${tableId}`}
    order by t.id`;
}

/** A round with everything that can be recomputed. */
export interface StoredRound {
  seq: bigint;
  roundId: string;
  hundredths: bigint;
  rawValue: string;
  color: string;
  source: "poll" | "history" | "computed" | "import";
  late: boolean;
  afterGap: boolean;
  proofHash: string | null;
  verified: boolean | null;
  historyHash: string;
  /** The UTC hour in which it was received. */
  receivedHour: string;
}

/** Rounds of a table after a seq, in order. */
export async function listStoredRounds(
  tx: Transaction,
  tableId: number,
  afterSeq: bigint,
  limit: number,
): Promise<StoredRound[]> {
  return tx<StoredRound[]>`
    select
      seq, round_id as "roundId", hundredths, raw_value as "rawValue", color, source, late, after_gap as "afterGap",
      proof_hash as "proofHash", verified, history_hash as "historyHash",
      utc_text(date_trunc('hour', received_at, 'UTC')) as "receivedHour"
    from rounds
    where table_id = ${tableId}
      and seq > ${afterSeq}
    order by seq
    limit ${limit}`;
}

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
