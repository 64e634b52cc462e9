import type { Queryable } from "../db/client.ts";

/** A table whose head does not name its newest rows. */
export interface StrayHead {
  table: string;
  /** The values of the head and of the newest row. */
  expected: string;
  found: string;
}

/**
 * Tables whose head does not match their newest round or forecast set, by name; at most `limit`. A pass writes the head
 * and the rows in one transaction, so a difference means that something else wrote or deleted rows.
 */
export async function listStrayHeads(sql: Queryable, limit: number): Promise<StrayHead[]> {
  return sql<StrayHead[]>`
    select
      t.house_id || '/' || t.game || '/' || t.market as table,
      format('round %s, forecast %s', h.last_seq, h.forecast_seq) as expected,
      format('round %s, forecast %s', coalesce(r.seq, 0), coalesce(s.last_seq, 0)) as found
    from table_heads h
    join tables t on t.id = h.table_id
    left join lateral (
      select seq, history_hash
      from rounds
      where table_id = h.table_id
      order by seq desc
      limit 1
    ) r on true
    left join lateral (
      select first_seq + cardinality(features) - 1 as last_seq
      from forecast_sets
      where table_id = h.table_id
      order by cutoff_seq desc
      limit 1
    ) s on true
    where h.last_seq <> coalesce(r.seq, 0)
      or h.forecast_seq <> coalesce(s.last_seq, 0)
      or h.history_hash <> coalesce(r.history_hash, h.history_hash)
    order by 1
    limit ${limit}`;
}

/** Bytes on the disk of PostgreSQL, with indexes. */
export interface DatabaseSize {
  all: number;
  /** Of rounds, forecasts, scores and the log: a row is added with each round, and none is deleted. */
  permanent: number;
}

/** The size of the database. */
export async function readDatabaseSize(sql: Queryable): Promise<DatabaseSize> {
  const [size] = await sql<DatabaseSize[]>`
    select
      pg_database_size(current_database())::float8 as "all",
      sum(pg_total_relation_size(name::regclass))::float8 as permanent
    from unnest(array['rounds', 'forecast_sets', 'score_sets', 'log_entries']) as name`;
  if (size === undefined) throw new Error("expected one row of sizes, got none");
  return size;
}

/** Unread payloads of a table that a pass or `normalize-rounds` could not take in. */
export interface FailedPayloads {
  table: string;
  payloads: number;
  oldestAt: string;
  /** The error of the oldest. */
  error: string;
}

/** Tables with unread payloads that carry an error, the oldest first. */
export async function listFailedPayloads(sql: Queryable): Promise<FailedPayloads[]> {
  return sql<FailedPayloads[]>`
    select
      t.house_id || '/' || t.game || '/' || t.market as table,
      count(*)::integer as payloads,
      utc_text(min(p.received_at)) as "oldestAt",
      (array_agg(p.error order by p.received_at))[1] as error
    from payloads p
    join tables t on t.id = p.table_id
    where p.state = 'unread'
      and p.error is not null
    group by t.id
    order by min(p.received_at), t.id`;
}

/** Partitions of today and tomorrow (UTC) that are missing: without them nothing can be stored on that day. */
export async function listMissingPartitions(sql: Queryable): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select whole.name
    from pg_partitioned_table p
    join pg_class c on c.oid = p.partrelid
    cross join generate_series(0, 1) as ahead (days)
    cross join lateral (
      select c.relname || '_' || to_char((now() at time zone 'UTC')::date + ahead.days, 'YYYYMMDD') as name
    ) whole
    where p.partstrat = 'r'
      and c.relnamespace = 'public'::regnamespace
      and not exists (
        select
        from pg_inherits i
        join pg_class part on part.oid = i.inhrelid
        where i.inhparent = c.oid
          and part.relname = whole.name
      )
    order by whole.name`;
  return rows.map(({ name }) => name);
}

/**
 * Lists the open disk alerts that no run will close: those of hosts without a worker, and those of this host's other
 * folders, unless one of its workers is older than the alert and may still use that folder.
 */
export async function listDisksWithoutWorker(
  sql: Queryable,
  { host, folder }: { host: string; folder: string },
): Promise<string[]> {
  const rows = await sql<{ subject: string }[]>`
    select a.subject
    from alerts a
    where a.kind = 'disk'
      and a.closed_at is null
      and a.subject <> ${`${host}:${folder}`}
      and not exists (
        select
        from workers w
        where starts_with(a.subject, w.host || ':')
          and (w.host <> ${host} or w.started_at < a.opened_at)
      )`;
  return rows.map(({ subject }) => subject);
}
