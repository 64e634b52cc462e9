import type { Queryable, Transaction } from "../../db/client.ts";

/** A forecast's place, by which an hour is ordered, and its hash. */
export interface AnchoredForecast {
  /** `house/game/market`. */
  table: string;
  seq: bigint;
  hash: string;
}

/** The root over the forecasts of an hour and how many they are. */
export interface Anchor {
  /** Its beginning, as every surface prints a time. */
  hour: string;
  size: number;
  root: string;
}

/**
 * How long after its end an hour is closed. The trigger on forecasts refuses an issued_at older than some seconds, so a
 * minute is plenty, and outlasts a step of the database's clock.
 */
const SETTLING_MS = 60_000;

/** A megabyte or so. */
const FORECASTS_PER_READ = 5000;

/**
 * Closed hours since the first forecast that have no root, oldest first.
 *
 * An hour is closed when no forecast of it can be committed any more: it is over by the margin, and no transaction that
 * writes forecasts began before that (one that began later is refused by the trigger; one whose process was frozen
 * between insert and commit is waited for).
 *
 * With `onlyNew` those after the newest root alone: asked every few seconds, that costs nothing after years.
 */
export async function listHoursToAnchor(
  sql: Queryable,
  { limit, onlyNew = false, settlingMs = SETTLING_MS }: { limit: number; onlyNew?: boolean; settlingMs?: number },
): Promise<string[]> {
  const settled = sql`interval '1 hour' + ${settlingMs} * interval '1 millisecond'`;
  const first = firstHour(sql);
  const rows = await sql<{ hour: string }[]>`
    select utc_text(h.hour) as hour
    from generate_series(
      ${onlyNew ? sql`coalesce((select max(hour) + interval '1 hour' from anchors), ${first})` : first},
      clock_timestamp() - (${settled}),
      interval '1 hour'
    ) as h (hour)
    left join anchors a on a.hour = h.hour
    where a.hour is null
      and h.hour + ${settled} <= (
        -- a role sees no transactions of others, whoever owns the schema may not either: one of both does
        select coalesce(min(coalesce(writer.xact_start, seen.xact_start, '-infinity')), 'infinity')
        from pg_locks l
        left join pg_stat_activity writer on writer.pid = l.pid
        left join sessions() seen on seen.pid = l.pid
        where l.database = (select oid from pg_database where datname = current_database())
          and l.relation = 'forecast_sets'::regclass
          and l.mode = 'RowExclusiveLock'
      )
    order by h.hour
    limit ${limit}`;
  return rows.map(({ hour }) => hour);
}

/** The hour of the first forecast. */
function firstHour(sql: Queryable) {
  return sql`(select date_trunc('hour', min(first_forecast_at), 'UTC') from table_heads)`;
}

/** The forecasts issued in an hour, of all tables, by table as bytes and seq; a batch at a time, as one snapshot. */
export function readForecastsOfHour(sql: Queryable, hour: string): AsyncIterable<AnchoredForecast[]> {
  return sql<AnchoredForecast[]>`
    select
      n.name as table,
      s.first_seq + f.place - 1 as seq,
      encode(substr(s.hashes, 32 * f.place - 31, 32), 'hex') as hash
    from forecast_sets s
    join tables t on t.id = s.table_id
    cross join lateral (select t.house_id || '/' || t.game || '/' || t.market as name) n
    cross join lateral generate_series(1, cardinality(s.features)) as f (place)
    where s.issued_at >= ${hour}::text::timestamptz
      and s.issued_at < ${hour}::text::timestamptz + interval '1 hour'
    order by n.name collate "C", 2`.cursor(FORECASTS_PER_READ);
}

/** Keeps the root of an hour; false where it has one, which stays. */
export async function saveAnchor(sql: Queryable, { hour, size, root }: Anchor): Promise<boolean> {
  const saved = await sql`
    insert into anchors (hour, size, root)
    values (${hour}, ${size}, ${root})
    on conflict (hour) do nothing
    returning hour`;
  return saved.length === 1;
}

/** Roots by hour, from after one on; null for the first. */
export async function listAnchors(sql: Queryable, after: string | null, limit: number): Promise<Anchor[]> {
  return sql<Anchor[]>`
    select utc_text(a.hour) as hour, size::float8 as size, root
    from anchors a
    where a.hour > coalesce(${after}::timestamptz, '-infinity')
    order by a.hour
    limit ${limit}`;
}

/** A forecast beside its hour and the hour's root. */
export interface ForecastToProve extends AnchoredForecast {
  hour: string;
  /** When no forecast can be added to the hour any more, and whether that is over. */
  closesAt: string;
  isClosed: boolean;
  /** Null before it is made. */
  anchor: Pick<Anchor, "size" | "root"> | null;
}

/** The forecast at a place in a table's chain; null where there is none. */
export async function findForecastToProve(
  sql: Queryable,
  { tableId, seq }: { tableId: number; seq: bigint },
): Promise<ForecastToProve | null> {
  const [found] = await sql<ForecastToProve[]>`
    select
      t.house_id || '/' || t.game || '/' || t.market as table,
      ${seq}::bigint as seq,
      encode(substr(s.hashes, (32 * (${seq} - s.first_seq) + 1)::integer, 32), 'hex') as hash,
      utc_text(of.hour) as hour,
      utc_text(closes.at) as "closesAt",
      closes.at <= clock_timestamp() as "isClosed",
      case when a.hour is not null then jsonb_build_object('size', a.size, 'root', a.root) end as anchor
    from forecast_sets s
    join tables t on t.id = s.table_id
    cross join lateral (select date_trunc('hour', s.issued_at, 'UTC') as hour) of
    cross join lateral (
      select of.hour + interval '1 hour' + ${SETTLING_MS} * interval '1 millisecond' as at
    ) closes
    left join anchors a on a.hour = of.hour
    where s.table_id = ${tableId}
      and s.cutoff_seq = cutoff_of_forecast(${tableId}, ${seq})`;
  return found ?? null;
}

/** An hour that should have a root, and the one it has. */
export interface HourToVerify {
  hour: string;
  anchor: Pick<Anchor, "size" | "root"> | null;
}

/**
 * Hours up to the newest root, in order: every hour since the first forecast and every one that has a root; of one
 * table, those in which it was spoken of. A year is nine thousand.
 */
export async function listHoursToVerify(tx: Transaction, tableId: number | undefined): Promise<HourToVerify[]> {
  const hours =
    tableId === undefined
      ? tx`
        select generate_series(${firstHour(tx)}, newest.hour, interval '1 hour') as hour
        from newest
        union
        select hour
        from anchors`
      : tx`
        select distinct date_trunc('hour', s.issued_at, 'UTC') as hour
        from forecast_sets s, newest
        where s.table_id = ${tableId}
          and s.issued_at < newest.hour + interval '1 hour'`;
  return tx<HourToVerify[]>`
    with newest as (select max(hour) as hour from anchors)
    select
      utc_text(h.hour) as hour,
      case when a.hour is not null then jsonb_build_object('size', a.size, 'root', a.root) end as anchor
    from (${hours}) h
    left join anchors a on a.hour = h.hour
    order by h.hour`;
}

/** Closed hours with forecasts (of one table where its id is given) after the newest root, oldest first. */
export async function listHoursAfterRoots(
  tx: Transaction,
  tableId: number | undefined,
  limit: number,
): Promise<string[]> {
  const rows = await tx<{ hour: string }[]>`
    select utc_text(h.hour) as hour
    from generate_series(
      coalesce((select max(hour) + interval '1 hour' from anchors), ${firstHour(tx)}),
      now() - interval '1 hour' - ${SETTLING_MS} * interval '1 millisecond',
      interval '1 hour'
    ) as h (hour)
    where exists (
      select
      from forecast_sets s
      where s.issued_at >= h.hour
        and s.issued_at < h.hour + interval '1 hour'
        ${tableId === undefined ? tx`` : tx`and s.table_id = ${tableId}`}
    )
    order by h.hour
    limit ${limit}`;
  return rows.map(({ hour }) => hour);
}
