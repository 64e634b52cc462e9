import type { Queryable, Transaction } from "../../db/client.ts";
import { outcomeOf, type DueNextColor, type Judgement } from "./judge.ts";
import type { Band } from "../model/table-model.ts";

/** First key of the advisory locks under which scores of a table are added: "rh", 2. */
const ACCURACY_LOCK = 0x7268_0002;
/** No forecast speaks of more rounds than this; see `forecast_looks_ahead`. */
const HORIZON_MAX = 400;

/** The name of a table, `house/game/market`. */
export async function nameTable(sql: Queryable, tableId: number): Promise<string> {
  const [row] = await sql<{ name: string }[]>`
    select house_id || '/' || game || '/' || market as name
    from tables
    where id = ${tableId}`;
  return row?.name ?? `table ${tableId}`;
}

/**
 * Takes the accuracy locks of tables, in id order, until the transaction ends. Whoever adds scores holds them, so that
 * an hour that is summed sees every score.
 */
export async function lockAccuracy(tx: Transaction, tableIds: readonly number[]): Promise<void> {
  const ids = tableIds.toSorted((a, b) => a - b);
  await tx`select pg_advisory_xact_lock(${ACCURACY_LOCK}::integer, id) from unnest(${ids}::integer[]) as id`;
}

/** Takes those of the accuracy locks that nobody holds now. */
export async function tryLockAccuracy(tx: Transaction, tableIds: readonly number[]): Promise<ReadonlySet<number>> {
  const rows = await tx<{ id: number; isLocked: boolean }[]>`
    select id, pg_try_advisory_xact_lock(${ACCURACY_LOCK}::integer, id) as "isLocked"
    from unnest(${[...tableIds]}::integer[]) as id`;
  return new Set(rows.flatMap(({ id, isLocked }) => (isLocked ? [id] : [])));
}

/** A forecast that can be judged, as its score will name it. */
export interface DueForecastRow {
  tableId: number;
  seq: bigint;
  model: string;
  feature: string;
  issueHour: string;
  issuedAt: string;
  cutoffSeq: bigint;
  /** The round that ended it, and the earliest time at which a round of it was asked for. */
  settledSeq: bigint;
  requestedAt: string | null;
}

/** A `next_color` forecast whose target has been taken in, with what judging it needs. */
export interface DueNextColorRow extends DueForecastRow, DueNextColor {
  bands: Band[];
}

/** The `next_color` forecasts of these tables that wait for a round which is there by now, in the order of the chains. */
export async function listDueNextColors(
  tx: Transaction,
  tableIds: readonly number[],
  limit: number,
): Promise<DueNextColorRow[]> {
  // the orders keep the planner to the primary keys while it knows nothing of the tables yet
  return tx<DueNextColorRow[]>`
    select
      f.table_id as "tableId",
      f.seq,
      f.model,
      f.feature,
      utc_text(f.issue_hour) as "issueHour",
      utc_text(f.issued_at) as "issuedAt",
      (extract(epoch from f.issued_at) * 1000000)::bigint as "issuedAtMicros",
      f.cutoff_seq as "cutoffSeq",
      f.target_round_id as "expectedRoundId",
      f.p_ppm as "pPpm",
      f.base_ppm as "basePpm",
      t.colors as bands,
      target.seq as "settledSeq",
      target.round_id as "targetRoundId",
      utc_text(target.requested_at) as "requestedAt",
      (extract(epoch from target.requested_at) * 1000000)::bigint as "targetRequestedAtMicros",
      target.color as "targetColor",
      target.after_gap as "targetAfterGap",
      exists (
        select
        from disputed_rounds d
        where d.table_id = f.table_id
          and d.round_id = target.round_id
      ) as "targetConflicts"
    from tables t
    cross join lateral (
      select array(
        select seq
        from open_forecasts
        where table_id = t.id
          and feature = 'next_color'
          and cutoff_seq < t.last_seq
        order by seq
      ) as seqs
      offset 0
    ) waiting
    cross join lateral (
      select *
      from forecasts
      where table_id = t.id
        and seq = any(waiting.seqs)
      order by seq
      offset 0
    ) f
    cross join lateral (
      select r.seq, r.round_id, r.requested_at, r.color, r.after_gap
      from rounds r
      where r.table_id = f.table_id
        and r.seq > f.cutoff_seq
        and not r.late
      order by r.seq
      limit 1
    ) target
    where t.id = any(${[...tableIds]}::integer[])
    order by f.table_id, f.seq
    limit ${limit}`;
}

/** A score ready to be stored. */
export type NewScore = { due: DueForecastRow } & Judgement;

/** Stores first scores and closes their forecasts; a forecast that has a score already keeps it. */
export async function saveScores(tx: Transaction, scores: readonly NewScore[]): Promise<void> {
  if (scores.length === 0) return;
  const rows = scores.map(({ due, status, score }) => ({
    table_id: due.tableId,
    forecast_seq: String(due.seq),
    model: due.model,
    feature: due.feature,
    issue_hour: due.issueHour,
    issued_at: due.issuedAt,
    status,
    settled_seq: String(due.settledSeq),
    target_requested_at: due.requestedAt,
    outcome: score === null ? null : outcomeOf(score),
    hit: score?.hit ?? null,
    p: score?.pPpm ?? null,
    base_p: score?.basePpm ?? null,
    brier: score?.brier ?? null,
    brier_base: score?.brierBase ?? null,
    rps: score?.rps ?? null,
    rps_base: score?.rpsBase ?? null,
    ll: score?.ll ?? null,
    ll_base: score?.llBase ?? null,
  }));
  await tx`
    with judged as (
      select *
      from jsonb_to_recordset(${tx.json(rows)}) as x (
        table_id integer, forecast_seq bigint, model text, feature text, issue_hour timestamptz, issued_at timestamptz,
        status text, settled_seq bigint, target_requested_at timestamptz, outcome integer, hit boolean, p integer,
        base_p integer, brier bigint, brier_base bigint, rps bigint, rps_base bigint, ll bigint, ll_base bigint
      )
    ),
    kept as (
      insert into scores (
        table_id, forecast_seq, rev, model, feature, issue_hour, issued_at, status, settled_seq, target_requested_at,
        outcome, hit, p, base_p, brier, brier_base, rps, rps_base, ll, ll_base
      )
      select
        table_id, forecast_seq, 1, model, feature, issue_hour, issued_at, status, settled_seq, target_requested_at,
        outcome, hit, p, base_p, brier, brier_base, rps, rps_base, ll, ll_base
      from judged
      on conflict (table_id, forecast_seq, rev) do nothing
    )
    delete from open_forecasts o
    using judged
    where o.table_id = judged.table_id
      and o.seq = judged.forecast_seq`;
}

/** An hour of a feature of a table whose sums must be made anew. */
export interface TouchedHour {
  tableId: number;
  model: string;
  feature: string;
  hour: string;
}

/**
 * Voids the scores of forecasts that a round belongs to which came with another result since, or which a person revised: a
 * score with the next rev, for good. Returns the hour of each forecast it voided.
 */
export async function voidDisputed(tx: Transaction, tableIds: readonly number[]): Promise<TouchedHour[]> {
  // whatever a round belongs to ended with it or within the longest horizon after it: that bounds the look-up
  return tx<TouchedHour[]>`
    with conflicting as (
      update conflicts
      set scores_voided_at = clock_timestamp()
      where id in (
        select id
        from conflicts
        where table_id = any(${[...tableIds]}::integer[])
          and scores_voided_at is null
        -- in the order in which a person who decides several of them locks them
        order by id
        for no key update
      )
      returning table_id, round_id
    ),
    revised as (
      update round_revision
      set scores_voided_at = clock_timestamp()
      where table_id = any(${[...tableIds]}::integer[])
        and scores_voided_at is null
      returning table_id, round_id
    ),
    taken as (
      select table_id, round_id
      from conflicting
      union
      select table_id, round_id
      from revised
    ),
    newest as (
      select distinct on (s.table_id, s.forecast_seq) s.*
      from taken
      join rounds r on r.table_id = taken.table_id and r.round_id = taken.round_id and not r.late
      cross join lateral (
        select max(seq) as seq
        from (
          select seq
          from rounds
          where table_id = r.table_id
            and seq >= r.seq
            and not late
          order by seq
          limit ${HORIZON_MAX}
        ) following
      ) last
      join scores s on s.table_id = r.table_id and s.settled_seq between r.seq and last.seq
      join forecasts f on f.table_id = s.table_id and f.seq = s.forecast_seq and f.cutoff_seq < r.seq
      order by s.table_id, s.forecast_seq, s.rev desc
    )
    insert into scores (
      table_id, forecast_seq, rev, model, feature, issue_hour, issued_at, status, settled_seq, target_requested_at
    )
    select
      table_id, forecast_seq, rev + 1, model, feature, issue_hour, issued_at, 'void_quarantine', settled_seq,
      target_requested_at
    from newest
    where status = 'scored'
    returning table_id as "tableId", model, feature, utc_text(issue_hour) as hour`;
}
