import type { Sql, Transaction } from "../db/client.ts";
import type { Fragment } from "../db/statement.ts";
import { NOTICE_ORDER } from "../rounds/notices/notices.ts";
import { PART_TIMEOUT_MS } from "./loader.ts";

/** More than any instance has; a page shows fewer. */
const MOST_HOUSES = 2_000;

/**
 * Reads in one snapshot, with a statement timeout as long as a page waits, so that the database does not continue for
 * an abandoned request.
 */
export async function readBriefly<Value>(sql: Sql, read: (tx: Transaction) => Promise<Value>): Promise<Value> {
  const { value } = await sql.begin("isolation level repeatable read, read only", async (tx) => {
    await tx`select set_config('statement_timeout', ${String(PART_TIMEOUT_MS)}, true)`;
    return { value: await read(tx) };
  });
  return value;
}

/** A house as visitors see it. */
export interface ListedHouse {
  id: string;
  name: string;
  /** Its rounds are simulated. */
  simulated: boolean;
  /** It is played by this service itself, with past or simulated rounds. */
  demo: boolean;
  enabled: boolean;
  paused: boolean;
  /** Tables that are polled. */
  tables: number;
  /** When a poll last received a round of any of its tables; null before the first. */
  lastRoundAt: Date | null;
  lastRoundAgeMs: number | null;
}

/** Returns houses by id, at most 2,000, and their total. */
export async function listSiteHouses(tx: Transaction): Promise<{ houses: ListedHouse[]; total: number }> {
  const rows = await tx<(ListedHouse & { total: number })[]>`
    select
      h.id,
      h.name,
      h.simulated,
      h.demo,
      h.enabled,
      h.paused_at is not null as paused,
      newest.tables,
      newest.at as "lastRoundAt",
      extract(epoch from clock_timestamp() - newest.at)::float8 * 1000 as "lastRoundAgeMs",
      count(*) over ()::integer as total
    from houses h
    left join lateral (
      select max(p.last_polled_round_at) as at, count(*) filter (where t.enabled)::integer as tables
      from tables t
      join table_heads p on p.table_id = t.id
      where t.house_id = h.id
    ) newest on true
    order by h.id
    limit ${MOST_HOUSES}`;
  return {
    total: rows[0]?.total ?? 0,
    houses: rows.map((row) => {
      const { total: _, ...house } = row;
      return house;
    }),
  };
}

/** The polls of a house in the last hour, and the successful ones. */
export interface PollSuccess {
  house: string;
  asked: number;
  good: number;
}

/**
 * Returns the polls of the last hour by house. A 2xx response, a 304 and the page of a round that was not played yet are
 * successful. A day of polls of a thousand houses would take longer than a page waits.
 */
export async function listPollSuccess(tx: Transaction): Promise<PollSuccess[]> {
  return tx<PollSuccess[]>`
    select
      p.house_id as house,
      sum(s.value::bigint)::float8 as asked,
      coalesce(sum(s.value::bigint) filter (where s.key ~ '^(2..|304|absent)$'), 0)::float8 as good
    from polls p
    cross join lateral jsonb_each_text(p.statuses) s
    where p.minute > now() - interval '1 hour'
    group by p.house_id`;
}

/** The public facts about the work behind the API. */
export interface Work {
  /** Worker processes that reported in the last half minute, and those whose clock is wrong. */
  workers: number;
  wrongClocks: number;
  /** Seconds since the scheduler's last heartbeat; null if there was none. */
  scheduledAgo: number | null;
  pausedQueues: number;
  /** Seconds since the oldest unread payload arrived, other than those of damaged tables; null if all are read. */
  unreadFor: number | null;
}

/** Reads the heartbeats of the workers, by the database clock. */
export async function readWork(tx: Transaction): Promise<Work> {
  const [work] = await tx<Work[]>`
    select
      alive.workers,
      alive."wrongClocks",
      (select extract(epoch from clock_timestamp() - at)::float8 from heartbeats where name = 'reconcile') as "scheduledAgo",
      (select count(*)::integer from queue_controls) as "pausedQueues",
      (
        select extract(epoch from clock_timestamp() - min(received_at))::float8
        from payloads
        where state = 'unread'
          and error is null
      ) as "unreadFor"
    from (
      select
        count(*)::integer as workers,
        count(*) filter (where clock_problem is not null)::integer as "wrongClocks"
      from workers
      where seen_at > now() - interval '30 seconds'
    ) alive`;
  if (work === undefined) throw new Error("expected the heartbeats of the workers, found none");
  return work;
}

/** The open notices of a table, as callers get them. */
export interface OpenNotice {
  ids: readonly bigint[];
  table: string;
  simulated: boolean;
  text: string;
  /** When the first of them was opened. */
  openedAt: Date;
}

/** The notices of the status page. */
export interface SiteNotices {
  open: OpenNotice[];
  /** Tables with an open notice. */
  tables: number;
  closed: Incident[];
}

/**
 * Returns the open notices of at most `limit` tables, and at most `limit` closed ones; the newest first, so that the
 * newest `limit` of {@link listIncidents} are among them.
 */
export async function listSiteNotices(tx: Transaction, limit: number): Promise<SiteNotices> {
  const rows = await tx<(OpenNotice & { total: number })[]>`
    select
      t.house_id || '/' || t.game || '/' || t.market as table,
      h.simulated,
      open.ids,
      open.text,
      open.first as "openedAt",
      count(*) over ()::integer as total
    from (
      select
        table_id,
        array_agg(id order by opened_at desc, id desc) as ids,
        min(opened_at) as first,
        max(opened_at) as newest,
        string_agg(
          upper(left(text, 1)) || substr(text, 2), '. '
          order by array_position(${[...NOTICE_ORDER]}::text[], kind)
        ) as text
      from notices
      where closed_at is null
      group by table_id
    ) open
    join tables t on t.id = open.table_id
    join houses h on h.id = t.house_id
    order by open.newest desc, open.ids[1] desc
    limit ${limit}`;
  return {
    open: rows.map(({ ids, table, simulated, text, openedAt }) => ({ ids, table, simulated, text, openedAt })),
    tables: rows[0]?.total ?? 0,
    closed: await listIncidents(tx, { limit, isClosed: true }),
  };
}

/**
 * One day of a component: its successful minutes or polls, and their total. `component` is such as `polling` or `house:<id>`.
 */
export interface UptimeDay {
  component: string;
  /** The UTC date, such as 2026-11-21. */
  day: string;
  good: number;
  total: number;
}

/** Returns the days of components for the status page, oldest first. */
export async function listUptime(tx: Transaction, components: readonly string[], days: number): Promise<UptimeDay[]> {
  return tx<UptimeDay[]>`
    select component, day::text as day, good::float8 as good, total::float8 as total
    from uptime_days
    where component = any(${[...components]}::text[])
      and day > (now() at time zone 'UTC')::date - ${days}::integer
      and day <= (now() at time zone 'UTC')::date -- a clock that was ahead may have left later ones
    order by component, uptime_days.day`;
}

/** A notice to callers, and when it was closed. */
export interface Incident {
  id: string;
  table: string;
  simulated: boolean;
  kind: string;
  text: string;
  openedAt: Date;
  updatedAt: Date;
  closedAt: Date | null;
}

interface WantedIncidents {
  limit: number;
  house?: string;
  tableId?: number;
  /** Without open ones. */
  isClosed?: boolean;
}

/** Returns notices that were opened within 90 days, newest first; of one house or table if given. */
export async function listIncidents(
  tx: Transaction,
  { limit, house, tableId, isClosed = false }: WantedIncidents,
): Promise<Incident[]> {
  const newestFirst = tx`order by opened_at desc, id desc limit ${limit}`;
  const newest = (of: Fragment) => tx`
    select *
    from notices
    where opened_at > now() - interval '90 days'
      ${of}
      and (not ${isClosed}::boolean or closed_at is not null)
    ${newestFirst}`;
  const listed =
    house === undefined
      ? newest(tableId === undefined ? tx`` : tx`and table_id = ${tableId}`)
      : // of each table by its index: the newest of all may be of other houses
        tx`
          select own.*
          from tables t
          cross join lateral (${newest(tx`and table_id = t.id`)}) own
          where t.house_id = ${house}
          ${newestFirst}`;
  return tx<Incident[]>`
    select
      n.id::text as id,
      t.house_id || '/' || t.game || '/' || t.market as table,
      h.simulated,
      n.kind,
      upper(left(n.text, 1)) || substr(n.text, 2) as text,
      n.opened_at as "openedAt",
      n.updated_at as "updatedAt",
      n.closed_at as "closedAt"
    from (${listed}) n
    join tables t on t.id = n.table_id
    join houses h on h.id = t.house_id
    order by n.opened_at desc, n.id desc
    limit ${limit}`;
}
