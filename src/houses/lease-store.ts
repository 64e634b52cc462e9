import type { Queryable, Sql, Transaction } from "../db/client.ts";
import type { afterPoll, Circuit } from "./circuit.ts";
import type { PollSummary } from "./poll-summary.ts";

/** A poll that takes its full timeout must still have time to save before its lease ends. */
const LEASE_BEYOND_TIMEOUT_MS = 2_000;
const FULL_REQUEST_EVERY_MINUTES = 10;

/** The right to poll a shard of a house, alone, until it is saved, released or expired. */
export interface Lease {
  house: string;
  shard: number;
  /** Fencing token: whoever takes the lease next raises it, and what an older holder saves is refused. */
  epoch: bigint;
  /** Database time of the lease, as PostgreSQL writes it, to the microsecond. */
  now: string;
  circuit: Circuit;
  /** The enabled tables of the shard, longest not asked first. */
  tables: LeasedTable[];
}

/** What is known of a table's feed when it is asked. */
export interface LeasedTable {
  tableId: number;
  game: string;
  market: string;
  etag: string | null;
  lastModified: string | null;
  lastSha256: string | null;
  lastPath: string | null;
  /** The newest stored answer could not be read. */
  refused: boolean;
  /** Stored answers in a row of which nothing, or nearly nothing, could be read. */
  badAnswers: number;
  /** The house is taken to have changed its format. */
  formatChanged: boolean;
  fullIsDue: boolean;
  /** The number of the newest stored round, where ids count up. */
  newest: bigint | null;
  /** Milliseconds since a poll brought a round; null before the first. */
  silentMs: number | null;
  /** Some answer was stored and not read yet; looked up only for houses with a page for each round. */
  hasUnread: boolean;
}

/**
 * Takes the lease of a house's shard by the database's clock, or null where it is not to be polled now: another worker
 * does, the house asked to be left alone, its circuit is open, it is paused or disabled. An open circuit whose wait is
 * over becomes half open: this poll is its probe. `byPage` where the house has tables with a page for each round.
 */
export async function takeLease(
  sql: Sql,
  { house, shard, timeoutMs, byPage = false }: { house: string; shard: number; timeoutMs: number; byPage?: boolean },
): Promise<Lease | null> {
  const [row] = await sql<(Circuit & { epoch: bigint; now: string })[]>`
    update poll_leases l
    set
      lease_until = clock_timestamp() + ${timeoutMs + LEASE_BEYOND_TIMEOUT_MS} * interval '1 millisecond',
      lease_epoch = lease_epoch + 1,
      circuit = case circuit when 'open' then 'half_open' else circuit end
    from houses h
    where l.house_id = ${house}
      and l.shard = ${shard}
      and h.id = l.house_id
      and h.enabled
      and h.paused_at is null
      and l.next_allowed_at <= clock_timestamp()
      and l.lease_until < clock_timestamp()
    returning
      l.lease_epoch as epoch,
      clock_timestamp()::text as now,
      l.circuit as state,
      l.failures_in_row as "failuresInRow",
      l.recent,
      l.opened_times as "openedTimes",
      l.throttled_in_row as "throttledInRow"`;
  if (row === undefined) return null;
  const { epoch, now, ...circuit } = row;
  return { house, shard, epoch, now, circuit, tables: await listLeasedTables(sql, house, shard, byPage) };
}

async function listLeasedTables(sql: Sql, house: string, shard: number, byPage: boolean): Promise<LeasedTable[]> {
  return sql<LeasedTable[]>`
    select
      t.id as "tableId",
      t.game,
      t.market,
      f.etag,
      f.last_modified as "lastModified",
      f.last_sha256 as "lastSha256",
      f.last_path as "lastPath",
      f.refused_since is not null as refused,
      f.bad_answers as "badAnswers",
      f.format_since is not null as "formatChanged",
      t.newest_number as newest,
      extract(epoch from clock_timestamp() - t.last_polled_round_at)::float8 * 1000 as "silentMs",
      ${byPage} and exists (
        select
        from payloads p
        where p.table_id = t.id
          and p.state = 'unread'
      ) as "hasUnread",
      f.last_full_at is null
        or f.last_full_at < clock_timestamp() - ${FULL_REQUEST_EVERY_MINUTES} * interval '1 minute' as "fullIsDue"
    from tables t
    join feeds f on f.table_id = t.id
    where t.house_id = ${house}
      and t.shard = ${shard}
      and t.enabled
    order by f.last_asked_at nulls first, t.position, t.id`;
}

/** Gives a lease back without a word about the house, so that another worker need not wait until it expires. */
export async function releaseLease(sql: Queryable, { house, shard, epoch }: Lease): Promise<void> {
  await sql`
    update poll_leases
    set lease_until = '-infinity'
    where house_id = ${house}
      and shard = ${shard}
      and lease_epoch = ${epoch}`;
}

/** The fence: the row stays locked until the transaction ends, so the epoch cannot change under it. */
export async function holdsLease(sql: Transaction, { house, shard, epoch }: Lease): Promise<boolean> {
  const held = await sql`
    select
    from poll_leases
    where house_id = ${house}
      and shard = ${shard}
      and lease_epoch = ${epoch}
    for update`;
  return held.length > 0;
}

/** Gives the lease back with what the poll says of the house; `next` is null where nothing was asked. */
export async function endLease(
  sql: Transaction,
  lease: Lease,
  summary: PollSummary,
  next: ReturnType<typeof afterPoll> | null,
): Promise<void> {
  if (next === null) return releaseLease(sql, lease);
  const { circuit, waitMs } = next;
  await sql`
    update poll_leases
    set
      lease_until = '-infinity',
      circuit = ${circuit.state},
      failures_in_row = ${circuit.failuresInRow},
      recent = ${circuit.recent},
      opened_times = ${circuit.openedTimes},
      throttled_in_row = ${circuit.throttledInRow},
      opened_at = case when ${circuit.state} = 'closed' then null else coalesce(opened_at, clock_timestamp()) end,
      next_allowed_at = case
        when ${waitMs} > 0 then clock_timestamp() + ${waitMs} * interval '1 millisecond'
        else next_allowed_at
      end,
      last_poll_at = ${lease.now}::timestamptz,
      last_ok_at = case when ${summary.outcome.kind === "good"} then ${lease.now}::timestamptz else last_ok_at end,
      last_status = ${summary.status},
      last_error = coalesce(${summary.error}, last_error),
      last_error_at = case when ${summary.error}::text is null then last_error_at else ${lease.now}::timestamptz end
    where house_id = ${lease.house}
      and shard = ${lease.shard}`;
}
