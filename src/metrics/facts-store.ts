import type { Sql, Transaction } from "../db/client.ts";
import { hasEnabledTable } from "../houses/polling/polling-store.ts";
import { type HouseFacts, readHouses } from "./house-facts-store.ts";

/** A number of something, by up to two names. */
export interface Count {
  house: string;
  kind: string;
  n: number;
}

/** All that one look at the database brings. */
export interface DatabaseFacts {
  houses: HouseFacts[];
  /** Shards of each enabled house by the state of their circuit; only those with enabled tables. */
  circuits: Count[];
  /** Of each house: open gaps, rounds missing in them, open quarantined items, undecided conflicts (at most 10,000). */
  openItems: Count[];
  /** Open notices of each house by kind. */
  notices: Count[];
  /** Open alerts, runs of calibrations, paused queues and connections to the database, by kind. */
  alerts: Count[];
  calibrationRuns: Count[];
  pauses: Count[];
  connections: Count[];
  /** Of each endpoint of a chain that was looked at in the last week: seconds since it was last read to its newest block. */
  chains: Count[];
  /** Of each chain, by its id: how many seconds ago the oldest deposit was seen that is still pending. */
  oldestDeposits: Count[];
  server: ServerFacts;
}

/** What there is one of. */
export interface ServerFacts {
  /** Unread payloads, without those that damaged tables keep: at most 10,000. */
  unreadPayloads: number;
  /** Age of the oldest of them; 0 if all are read. */
  oldestUnread: number;
  openForecasts: number;
  workers: number;
  wrongClocks: number;
  /** Since the reconciler was last alive; null if it never was. */
  reconciled: number | null;
  /** For how long partitions exist beyond today, in seconds of whole days. */
  partitionsAhead: number;
  mostConnections: number;
  /** Size of the database on its disk. */
  databaseBytes: number;
  /** Mails that are neither sent nor given up. */
  waitingMails: number;
  /** By how much the next try of one of them is late; 0 where none is. */
  lateMail: number;
}

/** Unread payloads, and undecided conflicts of a house, that are counted: a larger number would change no decision. */
const MOST_COUNTED = 10_000;

/** The database gives up on its own after this, so that a look that no one waits for any more costs nothing. */
const STATEMENT_TIMEOUT_MS = 2_000;

/**
 * Reads everything that metrics report of the database, in one read-only transaction. Nothing in it grows with time: tables of
 * facts are read by partial indexes of what is open. It grows with tables: 10,000 of them took half a second on two cores
 * with eight times as much to do.
 */
export async function readDatabaseFacts(sql: Sql): Promise<DatabaseFacts> {
  return sql.begin("read only", async (tx) => {
    await tx`select set_config('statement_timeout', ${String(STATEMENT_TIMEOUT_MS)}, true)`;
    // sent together: one round trip, one connection
    const [
      houses,
      circuits,
      openItems,
      notices,
      alerts,
      calibrationRuns,
      pauses,
      connections,
      chains,
      oldestDeposits,
      server,
    ] = await Promise.all([
      readHouses(tx),
      countCircuits(tx),
      countOpenItems(tx),
      countNotices(tx),
      countAlerts(tx),
      countRuns(tx),
      listPausedQueues(tx),
      countConnections(tx),
      readChains(tx),
      readOldestDeposits(tx),
      readServer(tx),
    ]);
    return {
      houses,
      circuits,
      openItems,
      notices,
      alerts,
      calibrationRuns,
      pauses,
      connections,
      chains,
      oldestDeposits,
      server,
    };
  });
}

function countCircuits(tx: Transaction): Promise<Count[]> {
  return tx<Count[]>`
    select h.id as house, l.circuit as kind, count(*)::integer as n
    from houses h
    join poll_leases l on l.house_id = h.id
    where h.enabled
      and ${hasEnabledTable(tx)}
    group by 1, 2
    order by 1, 2`;
}

function countOpenItems(tx: Transaction): Promise<Count[]> {
  return tx<Count[]>`
    with found as (
      select table_id, 'gaps' as kind, count(*) as n
      from gaps
      where state = 'open'
      group by 1
      union all
      select table_id, 'missing', coalesce(sum(missing - filled), 0)
      from gaps
      where state = 'open'
      group by 1
      union all
      select table_id, 'quarantine', count(*)
      from quarantine
      where state = 'open'
      group by 1
    )
    select t.house_id as house, f.kind, sum(f.n)::float8 as n
    from found f
    join tables t on t.id = f.table_id
    group by 1, 2
    union all
    select h.id, 'conflicts', open.n::float8
    from houses h
    cross join lateral (
      select count(*) as n
      from (
        select
        from tables t
        -- a limit of its own: a loop over the index of undecided conflicts
        cross join lateral (
          select from conflicts c where c.table_id = t.id and c.decided_at is null limit ${MOST_COUNTED}
        ) c
        where t.house_id = h.id
        limit ${MOST_COUNTED}
      ) first
    ) open
    where open.n > 0
    order by 1, 2`;
}

function countNotices(tx: Transaction): Promise<Count[]> {
  return tx<Count[]>`
    select t.house_id as house, n.kind, count(*)::integer as n
    from notices n
    join tables t on t.id = n.table_id
    where n.closed_at is null
    group by 1, 2
    order by 1, 2`;
}

function countAlerts(tx: Transaction): Promise<Count[]> {
  return tx<Count[]>`
    select '' as house, kind, count(*)::integer as n
    from alerts
    where closed_at is null
    group by kind
    order by kind`;
}

/** Runs that are asked for or continue now, and those that ended in the last day. */
function countRuns(tx: Transaction): Promise<Count[]> {
  return tx<Count[]>`
    select '' as house, status as kind, count(*)::integer as n
    from calibration_runs
    where status in ('queued', 'running')
      or finished_at > clock_timestamp() - interval '1 day'
    group by status
    order by status`;
}

function listPausedQueues(tx: Transaction): Promise<Count[]> {
  return tx<Count[]>`
    select '' as house, queue as kind, 1 as n
    from queue_controls
    order by queue`;
}

/** Connections of all our processes, by what they are for and what they do. */
function countConnections(tx: Transaction): Promise<Count[]> {
  return tx<Count[]>`
    select
      regexp_replace(application_name, '^roundhouse ', '') as house,
      coalesce(state, 'unknown') as kind,
      count(*)::integer as n
    from sessions()
    where application_name like 'roundhouse %'
    group by 1, 2
    order by 1, 2`;
}

function readChains(tx: Transaction): Promise<Count[]> {
  return tx<Count[]>`
    select
      chain_id::text as house,
      place::text as kind,
      extract(epoch from clock_timestamp() - responded_at)::float8 as n
    from chain_endpoints
    where responded_at is not null
      and looked_at > clock_timestamp() - interval '7 days'
    order by 1, 2`;
}

function readOldestDeposits(tx: Transaction): Promise<Count[]> {
  return tx<Count[]>`
    select
      chain_id::text as house,
      '' as kind,
      extract(epoch from clock_timestamp() - min(seen_at))::float8 as n
    from chain_deposits
    where state = 'pending'
    group by chain_id
    order by chain_id`;
}

async function readServer(tx: Transaction): Promise<ServerFacts> {
  const [row] = await tx<ServerFacts[]>`
    select
      unread.payloads as "unreadPayloads",
      unread.oldest as "oldestUnread",
      (select count(*)::integer from open_forecasts) as "openForecasts",
      alive.workers,
      alive.wrong as "wrongClocks",
      (select extract(epoch from clock_timestamp() - at)::float8 from heartbeats where name = 'reconcile') as reconciled,
      ahead.days * 86400 as "partitionsAhead",
      current_setting('max_connections')::integer as "mostConnections",
      pg_database_size(current_database())::float8 as "databaseBytes",
      mail.waiting as "waitingMails",
      mail.late as "lateMail"
    from (
      select
        count(*)::integer as payloads,
        coalesce(extract(epoch from clock_timestamp() - min(received_at)), 0)::float8 as oldest
      from (
        select received_at
        from payloads
        where state = 'unread'
          and error is null
        order by received_at
        limit ${MOST_COUNTED}
      ) first
    ) unread
    cross join (
      select count(*)::integer as workers, count(clock_problem)::integer as wrong
      from workers
      where seen_at > clock_timestamp() - interval '1 minute'
    ) alive
    cross join (
      select coalesce(min(last), current_date) - (now() at time zone 'UTC')::date as days
      from (
        select max(to_date(right(part.relname, 8), 'YYYYMMDD')) as last
        from pg_partitioned_table p
        join pg_inherits i on i.inhparent = p.partrelid
        join pg_class part on part.oid = i.inhrelid
        where p.partstrat = 'r'
          and part.relname ~ '_[0-9]{8}$'
        group by p.partrelid
      ) parents
    ) ahead
    cross join (
      select
        count(*)::integer as waiting,
        coalesce(greatest(extract(epoch from clock_timestamp() - min(next_try_at)), 0), 0)::float8 as late
      from mails
      where sent_at is null
        and given_up_at is null
    ) mail`;
  if (row === undefined) throw new Error("expected one row of facts about the database, got none");
  return row;
}
