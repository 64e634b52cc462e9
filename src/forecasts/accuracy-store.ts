import type { Queryable, Transaction } from "../db/client.ts";
import type { ScoreStatus } from "./judge.ts";
import type { MarkedSpan, TouchedHour } from "./score-store.ts";
import { referenceSumsFromJson, type ReferenceSums, type ReferenceSumsJson } from "./reference-sums.ts";
import { sumsFromJson, type Sums, type SumsJson } from "./sums.ts";

/** One forecast of an hour and what became of it; `status` is null while it waits for its rounds. */
export interface HourForecast {
  seq: bigint;
  feature: string;
  hash: string;
  cutoffSeq: bigint;
  horizon: number;
  pPpm: number[];
  basePpm: number[];
  status: ScoreStatus | null;
  outcome: number | null;
}

/**
 * Every forecast of these features issued in an hour with its newest score, in the order of the chain; with `asOf` the
 * newest score that was made before that time. Shared by the job that sums hours and by whoever checks them: both see
 * the same facts.
 */
export async function listHourForecasts(
  sql: Queryable,
  hour: Omit<TouchedHour, "feature"> & { features: readonly string[] },
  asOf: string | null = null,
): Promise<HourForecast[]> {
  return sql<HourForecast[]>`
    select
      f.seq, f.feature, f.hash, f.cutoff_seq as "cutoffSeq", f.horizon, f.p_ppm as "pPpm", f.base_ppm as "basePpm",
      s.status, s.outcome
    from forecasts f
    left join lateral (
      select status, outcome
      from scores
      where table_id = f.table_id
        and forecast_seq = f.seq
        ${asOf === null ? sql`` : sql`and scored_at < ${asOf}::text::timestamptz`}
      order by rev desc
      limit 1
    ) s on true
    where f.table_id = ${hour.tableId}
      and f.model = ${hour.model}
      and f.feature = any(${[...hour.features]}::text[])
      and f.issue_hour = ${hour.hour}
    order by f.seq`;
}

/** An on-time round, and whether its forecast was issued: one after the on-time round before it. */
export interface ReceivedRound {
  seq: bigint;
  issued: boolean;
}

/** The on-time rounds received in an hour while a model was live, after the table's first forecast, in seq order. */
export async function listReceivedRounds(sql: Queryable, hour: TouchedHour): Promise<ReceivedRound[]> {
  return sql<ReceivedRound[]>`
    with received as (
      select r.seq
      from tables t
      join rounds r on r.table_id = t.id
      where t.id = ${hour.tableId}
        and r.table_id = ${hour.tableId}
        and not r.late
        and r.received_at >= ${hour.hour}::timestamptz
        and r.received_at < ${hour.hour}::timestamptz + interval '1 hour'
        and r.seq > t.first_forecast_after_seq
        and live_model(t.id, r.seq) = ${hour.model}
    )
    select
      received.seq,
      exists (
        select
        from forecasts f
        where f.table_id = ${hour.tableId}
          and f.model = ${hour.model}
          and f.feature = ${hour.feature}
          and f.cutoff_seq = before.seq
      ) as issued
    from received
    cross join lateral (
      select r.seq
      from rounds r
      where r.table_id = ${hour.tableId}
        and not r.late
        and r.seq < received.seq
      order by r.seq desc
      limit 1
    ) before
    order by received.seq`;
}

/** The UTC hours in which the on-time rounds of spans were received, and the model that was live for them. */
export async function listReceivedHours(
  tx: Transaction,
  spans: readonly MarkedSpan[],
): Promise<{ tableId: number; model: string; hour: string }[]> {
  const rows = spans.map(({ tableId, afterSeq, upToSeq }) => ({
    table_id: tableId,
    after_seq: String(afterSeq),
    up_to_seq: String(upToSeq),
  }));
  return tx<{ tableId: number; model: string; hour: string }[]>`
    select span.table_id as "tableId", r.model, utc_text(r.hour) as hour
    from jsonb_to_recordset(${tx.json(rows)}) as span (table_id integer, after_seq bigint, up_to_seq bigint)
    cross join lateral (
      select distinct live_model(table_id, seq) as model, date_trunc('hour', received_at, 'UTC') as hour
      from rounds
      where table_id = span.table_id
        and seq > span.after_seq
        and seq <= span.up_to_seq
        and not late
    ) r`;
}

/** Hours of these tables that are over and whose row was last made while they were not. */
export async function listHoursToClose(tx: Transaction, tableIds: readonly number[]): Promise<TouchedHour[]> {
  return tx<TouchedHour[]>`
    select table_id as "tableId", model, feature, utc_text(hour) as hour
    from accuracy_hours
    where table_id = any(${[...tableIds]}::integer[])
      and not final
      and hour <= now() - interval '1 hour'
      and updated_at < hour + interval '1 hour'`;
}

/**
 * Keeps the sums of an hour. A row that is final (its hour is over and nothing is pending) is never overwritten: what
 * changes later, such as a void, is appended with the next rev. Nothing is written where nothing is new.
 */
export async function saveHour(
  tx: Transaction,
  hour: TouchedHour,
  sums: SumsJson,
  references: ReferenceSumsJson,
): Promise<void> {
  const isPending = sums.counts.pending !== "0";
  await tx`
    with newest as (
      select rev, final, sums, reference_sums, updated_at
      from accuracy_hours
      where table_id = ${hour.tableId}
        and model = ${hour.model}
        and feature = ${hour.feature}
        and hour = ${hour.hour}
      order by rev desc
      limit 1
    ),
    now as (
      select at, at >= ${hour.hour}::timestamptz + interval '1 hour' as over
      from (select clock_timestamp() as at) clock
    ),
    saved as (
      insert into accuracy_hours (table_id, model, feature, hour, rev, final, sums, reference_sums, updated_at)
      select
        ${hour.tableId}, ${hour.model}, ${hour.feature}, ${hour.hour}, coalesce(newest.rev + newest.final::integer, 1),
        now.over and ${!isPending}, ${tx.json(sums)}, ${tx.json(references)}, now.at
      from now
      left join newest on true
      where newest.sums is null
        or newest.sums <> ${tx.json(sums)}
        or newest.reference_sums <> ${tx.json(references)}
        or (now.over and not newest.final and newest.updated_at < ${hour.hour}::timestamptz + interval '1 hour')
      on conflict (table_id, model, feature, hour, rev) do update
      set
        final = excluded.final,
        sums = excluded.sums,
        reference_sums = excluded.reference_sums,
        updated_at = excluded.updated_at
      returning hour, updated_at
    )
    insert into accuracy_series as s (table_id, model, feature, first_hour, changed_at, due_at)
    select ${hour.tableId}, ${hour.model}, ${hour.feature}, hour, updated_at, updated_at
    from saved
    on conflict (table_id, model, feature) do update
    set
      first_hour = least(s.first_hour, excluded.first_hour),
      changed_at = excluded.changed_at,
      due_at = least(s.due_at, greatest(excluded.changed_at, s.published_at + ${LEAST_SECONDS} * interval '1 second'))`;
}

/** A published row is made anew at most this often. */
const LEAST_SECONDS = 10;

/** And at most once in this many seconds for each hour it sums, so that years of hours cost no more than weeks. */
const SECONDS_PER_HOUR_SUMMED = 0.1;

/** The periods that are published: whole UTC days including today, or, for 24h, the current UTC hour and the 23 before. */
export const PERIODS = ["24h", "7d", "30d", "90d", "all"] as const;

export type Period = (typeof PERIODS)[number];

/** A published row that is due: the span of its period by the database clock. */
export interface DuePeriod {
  tableId: number;
  model: string;
  feature: string;
  period: Period;
  start: string;
  end: string;
}

/** Tables of a house with published rows that are due. */
export async function listTablesToPublish(sql: Queryable, house: string): Promise<number[]> {
  const rows = await sql<{ id: number }[]>`
    select distinct t.id
    from accuracy_series s
    join tables t on t.id = s.table_id
    where t.house_id = ${house}
      and s.due_at <= now()
    order by t.id`;
  return rows.map(({ id }) => id);
}

/**
 * The published rows of a table that are missing, whose period has moved on, or whose hours have changed and which are
 * older than they need be.
 */
export async function listDuePeriods(tx: Transaction, tableId: number): Promise<DuePeriod[]> {
  return tx<DuePeriod[]>`
    select
      s.table_id as "tableId", s.model, s.feature, span.period,
      utc_text(span.starts) as start,
      utc_text(span.ends) as "end"
    from accuracy_series s
    cross join lateral (
      select
        '24h' as period,
        date_trunc('hour', now(), 'UTC') - interval '23 hours' as starts,
        date_trunc('hour', now(), 'UTC') + interval '1 hour' as ends
      union all
      select
        period,
        coalesce(date_trunc('day', now(), 'UTC') - (days - 1) * interval '24 hours', s.first_hour),
        date_trunc('day', now(), 'UTC') + interval '24 hours'
      from (values ('7d', 7), ('30d', 30), ('90d', 90), ('all', null)) as d (period, days)
    ) span
    left join published_accuracy p
      on p.table_id = s.table_id and p.model = s.model and p.feature = s.feature and p.period = span.period
    where s.table_id = ${tableId}
      and (
        p.table_id is null
        or p.period_end <> span.ends
        or (p.updated_at < s.changed_at and p.updated_at + ${leastAge(tx)} <= now())
      )`;
}

/** How old a published row `p` of the series `s` must be before it is made anew. */
function leastAge(tx: Transaction) {
  return tx`greatest(
    ${LEAST_SECONDS} * interval '1 second',
    (p.period_end - greatest(p.period_start, s.first_hour)) * ${SECONDS_PER_HOUR_SUMMED / 3600}::float8
  )`;
}

/** The newest sums of one hour. */
export interface HourSums {
  /** As every time is written, so that the order of the texts is the order of the hours. */
  hour: string;
  sums: Sums;
  references: ReferenceSums;
  updatedAt: string;
}

/** Reading the sums of so many hours takes some 20 ms, in which nothing else is done in this process. */
const HOURS_PER_READ = 1000;

/** The newest sums of each hour of a span, oldest first, some hours at a time. */
export async function* readHourSums(
  sql: Queryable,
  span: { tableId: number; model: string; feature: string; start: string; end: string },
): AsyncGenerator<HourSums[]> {
  let from = span.start;
  for (;;) {
    const rows = await sql<(Record<"hour" | "updatedAt" | "next", string> & { sums: unknown; references: unknown })[]>`
      select distinct on (h.hour)
        utc_text(h.hour) as hour,
        h.sums,
        h.reference_sums as "references",
        utc_text(h.updated_at) as "updatedAt",
        utc_text(h.hour + interval '1 hour') as next
      from accuracy_hours h
      where h.table_id = ${span.tableId}
        and h.model = ${span.model}
        and h.feature = ${span.feature}
        and h.hour >= ${from}
        and h.hour < ${span.end}
      order by h.hour, h.rev desc
      limit ${HOURS_PER_READ}`;
    yield rows.map(({ hour, sums, references, updatedAt }) => ({
      hour,
      sums: sumsFromJson(sums),
      references: referenceSumsFromJson(references),
      updatedAt,
    }));
    const last = rows.at(-1);
    if (last === undefined || rows.length < HOURS_PER_READ) return;
    from = last.next;
  }
}

/**
 * The share of on-time rounds of the last 24 published hours for which a next-color forecast was issued in time, by
 * table as `house/game/market`; a table without such rounds is not in it.
 */
export async function readCoverage(sql: Queryable): Promise<Map<string, number>> {
  const rows = await sql<{ table: string; coverage: number }[]>`
    select
      t.house_id || '/' || t.game || '/' || t.market as "table",
      1 - (p.sums -> 'counts' ->> 'not_issued')::float8 / (p.sums -> 'counts' ->> 'on_time_rounds')::float8 as coverage
    from published_accuracy p
    join tables t on t.id = p.table_id
    where p.feature = 'next_color'
      and p.period = '24h'
      and (p.sums -> 'counts' ->> 'on_time_rounds')::bigint > 0`;
  return new Map(rows.map(({ table, coverage }) => [table, coverage]));
}

/** Shows the sums of a period to callers. */
export async function publishPeriod(
  tx: Transaction,
  span: DuePeriod,
  sums: SumsJson,
  references: ReferenceSumsJson,
): Promise<void> {
  await tx`
    insert into published_accuracy (
      table_id, model, feature, period, period_start, period_end, sums, reference_sums
    )
    values (
      ${span.tableId}, ${span.model}, ${span.feature}, ${span.period}, ${span.start}, ${span.end}, ${tx.json(sums)},
      ${tx.json(references)}
    )
    on conflict (table_id, model, feature, period) do update
    set
      period_start = excluded.period_start,
      period_end = excluded.period_end,
      sums = excluded.sums,
      reference_sums = excluded.reference_sums,
      updated_at = clock_timestamp()`;
}

/** Notes when the published rows of a table are due next: when a period ends, or where hours have changed since. */
export async function savePublished(tx: Transaction, tableId: number): Promise<void> {
  await tx`
    update accuracy_series s
    set
      published_at = clock_timestamp(),
      due_at = next.due_at
    from (
      select
        s.model,
        s.feature,
        min(least(p.period_end, case when p.updated_at < s.changed_at then p.updated_at + ${leastAge(tx)} end)) as due_at
      from accuracy_series s
      join published_accuracy p on p.table_id = s.table_id and p.model = s.model and p.feature = s.feature
      where s.table_id = ${tableId}
      group by s.model, s.feature
    ) next
    where s.table_id = ${tableId}
      and s.model = next.model
      and s.feature = next.feature`;
}
