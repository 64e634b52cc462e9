import { batched } from "../../db/batched.ts";
import type { Pipeline, Queryable, Sql, Transaction } from "../../db/client.ts";
import type { Circuit } from "./circuit.ts";

/** A poll that takes its full timeout must still have time to save before its lease expires. */
const LEASE_BEYOND_TIMEOUT_MS = 2_000;
const FULL_REQUEST_EVERY_MINUTES = 10;

/** The exclusive right to poll a shard of a house until it is saved, released or expired. */
export interface Lease {
  house: string;
  shard: number;
  /** Fencing token: it grows with each lease, and saves by an older holder are refused. */
  epoch: bigint;
  /** When the poll was due; null for a single poll. */
  dueAt: Date | null;
  /** The previous lease expired: its holder died or hung, perhaps because of a payload. */
  isAfterExpiry: boolean;
  /** Database time of the lease, as PostgreSQL writes it, to the microsecond. */
  now: string;
  /** The local `performance.now()` at or after that time, so durations from it are at most too short. */
  takenAt: number;
  /** Another process polled the shard in the last minute, and may poll it next. */
  hasOther: boolean;
  circuit: Circuit;
  /** Bytes of its responses on this UTC day. */
  bytesToday: number;
  /** Queues that are paused. */
  paused: readonly string[];
  /** The enabled tables of the shard, the longest not polled first. */
  tables: LeasedTable[];
}

/** Another worker took the lease before the poll was saved; only its earlier transactions are stored. */
export class LeaseLostError extends Error {}

/** The state of a table when it is polled. */
export interface LeasedTable {
  tableId: number;
  game: string;
  market: string;
  /** Of its head. */
  version: bigint;
  /** Of its head, as PostgreSQL writes it in UTC. */
  respondedAt: string | null;
  /** Of its head. */
  payloadSha256: string | null;
  /** Of its head: the part of a shared response that it read last. */
  partSha256: string | null;
  etag: string | null;
  lastModified: string | null;
  /** The newest stored payload could not be read. */
  refused: boolean;
  /** Consecutive stored payloads that could not be read, or almost not. */
  badResponses: number;
  fullIsDue: boolean;
  /** The number of the newest on-time round, if ids count up. */
  newest: bigint | null;
  /** Milliseconds since a poll brought a round; null before the first. */
  silentMs: number | null;
  /** A payload is stored but not read yet; looked up only for houses with a page per round. */
  hasUnread: boolean;
}

/** The requester of a lease; `byPage` if the house has tables with a page per round. */
interface LeaseRequest {
  house: string;
  shard: number;
  /** When the settings with which it polls were updated. */
  updatedAt: string;
  timeoutMs: number;
  byPage?: boolean;
  /** When the poll is due by the pace of its run; null for a single poll. */
  dueAt: Date | null;
}

/** Clocks of processes may differ by half a second. If the saved time is further ahead, a wrong clock saved it. */
const WRONG_CLOCK_SECONDS = 2;

/** Leases that one transaction takes. */
const LEASES_AT_ONCE = 100;

/** For so long after a poll by another process the next one may be its too. */
const OTHER_MS = 60_000;

/**
 * Takes the lease of a house's shard by the database's clock. Null if it must not be polled now: another worker polls it, the
 * house asked to wait, its circuit is open, it is paused or disabled, or another run made the poll that is due (two processes
 * may have a run of a house, as after one was killed). An open circuit whose wait is over becomes half open: this poll is its
 * probe. It has no tables if the settings of the house were updated meanwhile.
 */
export type TakeLease = (request: LeaseRequest) => Promise<Lease | null>;

/** Takes leases for polls of this process, those that wait together in one transaction. */
export function createLeaseTaker(pipeline: Pipeline): TakeLease {
  const own = new Map<string, OwnLease>();
  return batched((requests) => takeLeases(pipeline, requests, own), LEASES_AT_ONCE);
}

/** The last lease of a shard that this process had, and when it last found that another process had one since. */
interface OwnLease {
  epoch: bigint;
  otherAt: number;
}

async function takeLeases(
  pipeline: Pipeline,
  requests: readonly LeaseRequest[],
  own: Map<string, OwnLease>,
): Promise<(Lease | null)[]> {
  const [taken, listed] = await pipeline.transact([
    takeFree(pipeline, requests),
    listLeasedTables(pipeline, requests),
  ] as const);
  const takenAt = performance.now();
  const rows = new Map(taken.map((row) => [nameOf(row), row]));
  const tables = Map.groupBy(listed, nameOf);
  return requests.map(({ house, shard, dueAt }) => {
    const row = rows.get(nameOf({ house, shard }));
    if (row === undefined) return null;
    rows.delete(nameOf(row)); // for the first of equal requests
    const { epoch, isAfterExpiry, now, paused, bytesToday, ...circuit } = row;
    const last = own.get(nameOf(row));
    const otherAt = last === undefined || last.epoch + 1n === epoch ? (last?.otherAt ?? -Infinity) : takenAt;
    own.set(nameOf(row), { epoch, otherAt });
    return {
      house,
      shard,
      epoch,
      dueAt,
      isAfterExpiry,
      now,
      takenAt,
      hasOther: takenAt - otherAt < OTHER_MS,
      circuit,
      bytesToday,
      paused,
      tables: tables.get(nameOf(row)) ?? [],
    };
  });
}

const nameOf = ({ house, shard }: { house: string; shard: number }): string => `${house}/${shard}`;

interface TakenRow
  extends Circuit, Pick<Lease, "house" | "shard" | "epoch" | "isAfterExpiry" | "now" | "paused" | "bytesToday"> {}

function takeFree(sql: Queryable, requests: readonly LeaseRequest[]) {
  // a locked row is being saved or changed: its next poll is soon enough, so nothing waits for the lock
  return sql<TakenRow[]>`
    with wanted as (
      select distinct on (house, shard) *
      from unnest(
        ${requests.map(({ house }) => house)}::text[],
        ${requests.map(({ shard }) => shard)}::integer[],
        ${requests.map(({ timeoutMs }) => timeoutMs + LEASE_BEYOND_TIMEOUT_MS)}::float8[],
        ${requests.map(({ dueAt }) => dueAt?.toISOString() ?? null)}::text[]::timestamptz[]
      ) as w (house, shard, ms, due_at)
    ),
    free as materialized (
      select l.house_id, l.shard, l.lease_until, w.ms
      from wanted w
      join poll_leases l on l.house_id = w.house and l.shard = w.shard
      join houses h on h.id = l.house_id
      where h.enabled
        and h.paused_at is null
        and not exists (select from queue_controls where queue = 'poll-house')
        and l.next_allowed_at <= clock_timestamp()
        and l.lease_until < clock_timestamp()
        and (
          w.due_at between l.last_due_at - ${WRONG_CLOCK_SECONDS} * interval '1 second' and l.last_due_at
        ) is not true
      for no key update of l skip locked
    )
    update poll_leases l
    set
      lease_until = clock_timestamp() + free.ms * interval '1 millisecond',
      lease_epoch = l.lease_epoch + 1,
      circuit = case l.circuit when 'open' then 'half_open' else l.circuit end
    from free
    where l.house_id = free.house_id
      and l.shard = free.shard
    returning
      l.house_id as house,
      l.shard,
      l.lease_epoch as epoch,
      free.lease_until > '-infinity' as "isAfterExpiry",
      clock_timestamp()::text as now,
      array(select queue from queue_controls) as paused,
      l.circuit as state,
      l.failures_in_row as "failuresInRow",
      l.recent,
      l.opened_times as "openedTimes",
      l.throttled_in_row as "throttledInRow",
      case when l.bytes_on = (clock_timestamp() at time zone 'UTC')::date then l.bytes_today else 0 end::float8
        as "bytesToday"`;
}

function listLeasedTables(sql: Queryable, requests: readonly LeaseRequest[]) {
  return sql<(LeasedTable & { house: string; shard: number })[]>`
    select
      t.house_id as house,
      t.shard,
      t.id as "tableId",
      t.game,
      t.market,
      h.version,
      h.responded_at::text as "respondedAt",
      encode(h.payload_sha256, 'hex') as "payloadSha256",
      encode(h.part_sha256, 'hex') as "partSha256",
      f.etag,
      f.last_modified as "lastModified",
      f.refused_since is not null as refused,
      f.bad_responses as "badResponses",
      h.newest_number as newest,
      extract(epoch from clock_timestamp() - h.last_polled_round_at)::float8 * 1000 as "silentMs",
      w.by_page and exists (
        select
        from payloads p
        where p.table_id = t.id
          and p.state = 'unread'
      ) as "hasUnread",
      f.last_full_at is null
        or f.last_full_at < clock_timestamp() - ${FULL_REQUEST_EVERY_MINUTES} * interval '1 minute'
        or f.last_full_at > clock_timestamp() as "fullIsDue"
    from (
      select distinct on (house, shard) *
      from unnest(
        ${requests.map(({ house }) => house)}::text[],
        ${requests.map(({ shard }) => shard)}::integer[],
        ${requests.map(({ byPage = false }) => byPage)}::boolean[],
        ${requests.map(({ updatedAt }) => updatedAt)}::text[]::timestamptz[]
      ) as r (house, shard, by_page, updated_at)
    ) as w
    join houses o on o.id = w.house and o.updated_at = w.updated_at -- newer settings are for the next poll
    join tables t on t.house_id = w.house and t.shard = w.shard
    join feeds f on f.table_id = t.id
    join table_heads h on h.table_id = t.id
    where t.enabled
    order by f.last_asked_at nulls first, t.position, t.id`;
}

/**
 * Suspends all requests to a house, polls and history, for the time that it asked for. In its own transaction: leases are
 * locked in the order of passes.
 */
export async function holdHouse(sql: Sql, house: string, waitMs: number): Promise<void> {
  await sql`
    update poll_leases
    set next_allowed_at = greatest(next_allowed_at, clock_timestamp() + ${waitMs} * interval '1 millisecond')
    where house_id = ${house}
      and shard in (
        select shard
        from poll_leases
        where house_id = ${house}
        order by shard
        for no key update
      )`;
}

/**
 * Ends the leases under which tables are polled, so that responses to requests with their old settings are dropped. Before
 * the heads are locked, as in passes. An expired lease stays expired: its poll may have ended its process.
 */
export async function endLeasesOf(tx: Transaction, tableIds: readonly number[]): Promise<void> {
  await tx`
    with locked as (
      select house_id, shard
      from poll_leases
      where (house_id, shard) in (select house_id, shard from tables where id = any(${[...tableIds]}::integer[]))
      order by house_id, shard
      for no key update
    )
    update poll_leases l
    set
      lease_until = case when l.lease_until > clock_timestamp() then '-infinity' else l.lease_until end,
      lease_epoch = l.lease_epoch + 1
    from locked
    where l.house_id = locked.house_id
      and l.shard = locked.shard`;
}

/** Releases a lease without a result for the house, so that another worker need not wait until it expires. */
export async function releaseLease(sql: Queryable, { house, shard, epoch }: Lease): Promise<void> {
  await sql`
    update poll_leases
    set lease_until = '-infinity'
    where house_id = ${house}
      and shard = ${shard}
      and lease_epoch = ${epoch}`;
}
