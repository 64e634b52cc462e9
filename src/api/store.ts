import type { Queryable } from "../db/client.ts";
import type { PublishedCalibration } from "../forecasts/calibration/calibration-store.ts";
import type { PublishedForecast } from "../forecasts/issue/published-forecast.ts";
import type { PeriodSums } from "../forecasts/accuracy/present.ts";
import type { PublishedReading } from "../forecasts/readings/reading-store.ts";
import { referenceSumsFromJson } from "../forecasts/accuracy/reference-sums.ts";
import { sumsFromJson } from "../forecasts/accuracy/sums-json.ts";

/** The database clock: milliseconds since 1970, and the same as a text that loses nothing. */
export async function readClock(sql: Queryable): Promise<{ ms: number; text: string }> {
  const [clock] = await sql<{ ms: number; text: string }[]>`
    select extract(epoch from at)::float8 * 1000 as ms, utc_text(at) as text
    from clock_timestamp() as at`;
  if (clock === undefined) throw new Error("expected the time of the database, got nothing");
  return clock;
}

/** A house as far as callers see it. */
export interface HouseRow {
  id: string;
  name: string;
  simulated: boolean;
  enabled: boolean;
  paused: boolean;
  disabledTables: number[];
}

/** All houses. There are few, and what changes of them is announced nowhere, so they are simply read again and again. */
export async function readHouses(sql: Queryable): Promise<HouseRow[]> {
  return sql<HouseRow[]>`
    select
      h.id,
      h.name,
      h.simulated,
      h.enabled,
      h.paused_at is not null as paused,
      array(select id from tables where house_id = h.id and not enabled) as "disabledTables"
    from houses h
    order by h.id`;
}

/** What is published of a table beside its rounds. */
export interface TableRow {
  id: number;
  house: string;
  game: string;
  market: string;
  position: number;
  enabled: boolean;
  roundIds: "consecutive" | "opaque";
  lastSeq: number;
  lastRoundAt: string | null;
  lastPolledMs: number | null;
  continuityText: string | null;
  published: PublishedForecast | null;
  calibration: PublishedCalibration | null;
  reading: PublishedReading | null;
  generatedAt: string;
}

/** What is published of a table, and when it was written. */
export interface TableMark {
  id: number;
  writtenAt: string;
}

/**
 * Which tables were written since a moment. It looks five seconds further back: a row's time is taken before its
 * transaction is visible. So most of them are held already, and their rows are much larger than this.
 */
export async function readTableMarks(sql: Queryable, since: string): Promise<TableMark[]> {
  return sql<TableMark[]>`
    select table_id as id, utc_text(updated_at) as "writtenAt"
    from published_now
    where updated_at > ${since}::text::timestamptz - interval '5 seconds'`;
}

/** The published tables of these marks as they are by now, or all. */
export async function readTables(sql: Queryable, marks: readonly TableMark[] | null): Promise<TableRow[]> {
  return sql<TableRow[]>`
    select
      t.id,
      t.house_id as house,
      t.game,
      t.market,
      t.position,
      t.enabled,
      t.round_ids as "roundIds",
      p.last_seq::float8 as "lastSeq",
      utc_text(p.last_round_at) as "lastRoundAt",
      extract(epoch from p.last_polled_round_at)::float8 * 1000 as "lastPolledMs",
      p.continuity_text as "continuityText",
      p.forecast as published,
      p.calibration,
      p.reading,
      utc_text(p.updated_at) as "generatedAt"
    from published_now p
    join tables t on t.id = p.table_id
    where ${marks === null ? sql`true` : sql`p.table_id = any(${marks.map(({ id }) => id)}::integer[])`}`;
}

/** Which published accuracy there is, and when it was written. */
export interface AccuracyMark {
  tableId: number;
  model: string;
  feature: string;
  period: string;
  writtenAt: string;
}

/** What was measured of a table, by feature and period. */
export interface AccuracyRow extends PeriodSums, AccuracyMark {}

/**
 * Which accuracy is published, or was written since a moment (and five seconds before it, as with tables). The sums
 * are much larger than this and seldom new to whoever looks often.
 */
export async function readAccuracyMarks(sql: Queryable, since: string | null): Promise<AccuracyMark[]> {
  return sql<AccuracyMark[]>`
    select table_id as "tableId", model, feature, period, utc_text(updated_at) as "writtenAt"
    from published_accuracy
    where ${since === null ? sql`true` : sql`updated_at > ${since}::text::timestamptz - interval '5 seconds'`}
    order by table_id, feature, model, period`;
}

/** The published accuracy of these marks, as it is by now. */
export async function readAccuracy(sql: Queryable, marks: readonly AccuracyMark[]): Promise<AccuracyRow[]> {
  const rows = await sql<(Omit<AccuracyRow, "sums" | "references"> & Record<"sums" | "references", unknown>)[]>`
    select
      table_id as "tableId",
      model,
      feature,
      period,
      utc_text(period_start) as start,
      utc_text(period_end) as "end",
      sums,
      reference_sums as "references",
      utc_text(updated_at) as "writtenAt"
    from unnest(
      ${marks.map(({ tableId }) => tableId)}::integer[],
      ${marks.map(({ model }) => model)}::text[],
      ${marks.map(({ feature }) => feature)}::text[],
      ${marks.map(({ period }) => period)}::text[]
    ) as asked (table_id, model, feature, period)
    join published_accuracy using (table_id, model, feature, period)`;
  return rows.map((row) => ({
    ...row,
    sums: sumsFromJson(row.sums),
    references: referenceSumsFromJson(row.references),
  }));
}

/** A round as callers see it. Rounds of one table are in the order of `order`, then of `seq`; see RoundText. */
export interface RoundRow {
  tableId: number;
  seq: number;
  order: bigint;
  roundId: string;
  hundredths: bigint;
  color: string;
  occurredAt: string | null;
  receivedAt: string;
  verified: boolean | null;
  late: boolean;
}

/** Rounds with a seq above `after` up to `lastSeq` are asked for. */
export interface Span {
  id: number;
  roundIds: "consecutive" | "opaque";
  after: number;
  lastSeq: number;
}

/**
 * The rounds of these spans. The order inside keeps it to a look-up for each of them: joined, PostgreSQL reads all rounds
 * there are, since it cannot know how short a span is.
 */
export async function readNewRounds(sql: Queryable, spans: readonly Span[]): Promise<RoundRow[]> {
  if (spans.length === 0) return [];
  return sql<RoundRow[]>`
    select ${roundColumns(sql)}
    from unnest(
      ${spans.map(({ id }) => id)}::integer[],
      ${spans.map(({ after }) => after)}::bigint[],
      ${spans.map(({ lastSeq }) => lastSeq)}::bigint[]
    ) as asked (table_id, after, last_seq)
    join tables t on t.id = asked.table_id
    cross join lateral (
      select *
      from rounds
      where table_id = asked.table_id
        and seq > asked.after
        and seq <= asked.last_seq
      order by seq
      offset 0
    ) r
    where t.round_ids = 'opaque'
      or r.round_number is not null`;
}

/** The newest rounds of these tables up to their `lastSeq`, at most `limit` of each. */
export async function readNewestRounds(sql: Queryable, spans: readonly Span[], limit: number): Promise<RoundRow[]> {
  const byNumber = spans.filter(({ roundIds }) => roundIds === "consecutive");
  const byTime = spans.filter(({ roundIds }) => roundIds === "opaque");
  const rows: RoundRow[] = [];
  if (byNumber.length > 0) {
    rows.push(
      ...(await sql<RoundRow[]>`
        select ${roundColumns(sql)}
        from unnest(
          ${byNumber.map(({ id }) => id)}::integer[],
          ${byNumber.map(({ lastSeq }) => lastSeq)}::bigint[]
        ) as asked (table_id, last_seq)
        join tables t on t.id = asked.table_id
        cross join lateral (
          select *
          from rounds
          where table_id = asked.table_id
            and seq <= asked.last_seq
            and round_number is not null
          order by round_number desc
          limit ${limit}
        ) r`),
    );
  }
  if (byTime.length > 0) {
    rows.push(
      ...(await sql<RoundRow[]>`
        select ${roundColumns(sql)}
        from unnest(
          ${byTime.map(({ id }) => id)}::integer[],
          ${byTime.map(({ lastSeq }) => lastSeq)}::bigint[]
        ) as asked (table_id, last_seq)
        join tables t on t.id = asked.table_id
        cross join lateral (
          select *
          from rounds
          where table_id = asked.table_id
            and seq <= asked.last_seq
          order by coalesce(occurred_at, received_at) desc, seq desc
          limit ${limit}
        ) r`),
    );
  }
  return rows;
}

/** Where the newest on-time round of each of these tables stands, up to their `lastSeq`; null before the first. */
export async function readNewestOnTime(
  sql: Queryable,
  spans: readonly Span[],
): Promise<{ tableId: number; seq: number | null }[]> {
  return sql<{ tableId: number; seq: number | null }[]>`
    select
      asked.table_id as "tableId",
      (
        select seq::float8
        from rounds
        where table_id = asked.table_id
          and seq <= asked.last_seq
          and not late
        order by rounds.seq desc
        limit 1
      ) as seq
    from unnest(
      ${spans.map(({ id }) => id)}::integer[],
      ${spans.map(({ lastSeq }) => lastSeq)}::bigint[]
    ) as asked (table_id, last_seq)`;
}

function roundColumns(sql: Queryable) {
  return sql`
    r.table_id as "tableId",
    r.seq::float8 as seq,
    case t.round_ids
      when 'consecutive' then r.round_number
      else (extract(epoch from coalesce(r.occurred_at, r.received_at)) * 1000000)::bigint
    end as "order",
    r.round_id as "roundId",
    r.hundredths,
    r.color,
    utc_text(r.occurred_at) as "occurredAt",
    utc_text(r.received_at) as "receivedAt",
    r.verified,
    r.late`;
}
