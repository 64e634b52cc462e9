import type { Queryable, Transaction } from "../db/client.ts";
import { isToBeSummed } from "./accuracy-store.ts";
import { outcomeOf, type DueNextColor, type Judgement } from "./judge.ts";
import type { Band } from "./table-model.ts";

/** First key of the advisory locks under which scores of a table are added: "rh", 2. */
const ACCURACY_LOCK = 0x7268_0002;
const TABLES_PER_TRANSACTION = 100;
/** No forecast speaks of more rounds than this; see `forecast_looks_ahead`. */
const HORIZON_MAX = 400;

/** A house whose tables with ids above `afterTableId` are to be looked at. */
export interface HouseToScore {
  house: string;
  afterTableId: number;
}

/** A table that has something to score. */
export interface TableToScore {
  id: number;
  house: string;
}

/**
 * Tables of houses, each given once, with rounds that score-accuracy has not come to, or with conflicts or revisions to
 * apply: at most 100, of each house its first, then of each its second; in id order. Houses of which some are left are
 * `cutOff`.
 */
export async function listTablesToScore(
  sql: Queryable,
  houses: readonly HouseToScore[],
): Promise<{ tables: TableToScore[]; cutOff: ReadonlySet<string> }> {
  const rows = await sql<(TableToScore & { wanted: number })[]>`
    select *
    from (
      select t.id, asked.house, (count(*) over (partition by asked.place))::integer as wanted
      from unnest(
        ${houses.map(({ house }) => house)}::text[],
        ${houses.map(({ afterTableId }) => afterTableId)}::integer[]
      ) with ordinality as asked (house, after_id, place)
      join tables t on t.house_id = asked.house and t.id > asked.after_id
      left join accuracy_marks m on m.table_id = t.id
      where t.first_forecast_at is not null
        and (
          coalesce(m.seq, t.first_forecast_after_seq) < t.last_seq
          or exists (select from disputed_rounds d where d.table_id = t.id and d.scores_voided_at is null)
        )
      order by row_number() over (partition by asked.place order by t.id), asked.place
      limit ${TABLES_PER_TRANSACTION}
    ) due
    order by id`;
  const given = Map.groupBy(rows, ({ house }) => house);
  const cutOff = rows.filter(({ house, wanted }) => (given.get(house)?.length ?? 0) < wanted);
  return { tables: rows.map(({ id, house }) => ({ id, house })), cutOff: new Set(cutOff.map(({ house }) => house)) };
}

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

/** The rounds of a table that score-accuracy comes to now: after one seq, up to and with another. */
export interface MarkedSpan {
  tableId: number;
  afterSeq: bigint;
  upToSeq: bigint;
}

/** Spans as a statement takes them: `table_id`, `after_seq` and `up_to_seq`. */
export function spansToJson(spans: readonly MarkedSpan[]): Record<string, string | number>[] {
  return spans.map(({ tableId, afterSeq, upToSeq }) => ({
    table_id: tableId,
    after_seq: String(afterSeq),
    up_to_seq: String(upToSeq),
  }));
}

/** From each table's mark to its newest round; none of a table without forecasts. Needs the accuracy locks. */
export async function listNewSpans(tx: Transaction, tableIds: readonly number[]): Promise<MarkedSpan[]> {
  return tx<MarkedSpan[]>`
    select
      t.id as "tableId",
      coalesce(m.seq, t.first_forecast_after_seq) as "afterSeq",
      t.last_seq as "upToSeq"
    from tables t
    left join accuracy_marks m on m.table_id = t.id
    where t.id = any(${[...tableIds]}::integer[])
      and t.first_forecast_after_seq is not null
    order by t.id`;
}

/** Moves the marks of tables to the end of their spans. */
export async function saveMarks(tx: Transaction, spans: readonly MarkedSpan[]): Promise<void> {
  const rows = spans.map(({ tableId, upToSeq }) => ({ table_id: tableId, seq: String(upToSeq) }));
  await tx`
    insert into accuracy_marks (table_id, seq)
    select table_id, seq
    from jsonb_to_recordset(${tx.json(rows)}) as x (table_id integer, seq bigint)
    on conflict (table_id) do update
    set seq = excluded.seq`;
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
    from open_forecasts o
    join forecasts f on f.table_id = o.table_id and f.seq = o.seq
    join tables t on t.id = o.table_id
    cross join lateral (
      select r.seq, r.round_id, r.requested_at, r.color, r.after_gap
      from rounds r
      where r.table_id = o.table_id
        and r.seq > o.cutoff_seq
        and not r.late
      order by r.seq
      limit 1
    ) target
    where o.table_id = any(${[...tableIds]}::integer[])
      and o.feature = 'next_color'
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

/** Houses with rounds that score-accuracy has not come to, conflicts or revisions not applied, or sums that are due. */
export async function listHousesToScore(sql: Queryable): Promise<{ house: string }[]> {
  return sql<{ house: string }[]>`
    select t.house_id as house
    from tables t
    left join accuracy_marks m on m.table_id = t.id
    where t.first_forecast_at is not null
      and coalesce(m.seq, t.first_forecast_after_seq) < t.last_seq
    union
    select t.house_id
    from disputed_rounds d
    join tables t on t.id = d.table_id
    where d.scores_voided_at is null
      and t.first_forecast_at is not null
    union
    select t.house_id
    from accuracy_series s
    join tables t on t.id = s.table_id
    where s.due_at <= now()
    union
    select t.house_id
    from (select distinct table_id from hours_to_sum) noted
    join tables t on t.id = noted.table_id
    where ${isToBeSummed(sql)}
    limit 1000`;
}
