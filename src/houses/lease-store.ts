import type { Queryable, Sql } from "../db/client.ts";
import type { Circuit } from "./circuit.ts";
import { togetherBy } from "../db/together.ts";

/** A poll that takes its full timeout must still have time to save before its lease ends. */
const LEASE_BEYOND_TIMEOUT_MS = 2_000;
const FULL_REQUEST_EVERY_MINUTES = 10;

/*
 * Answers that wait to be read for two turns (two seconds at least: reading takes one) show that more is asked for than can
 * be taken in. Their house has then only every fifth turn, or as many as begin within 25 seconds if that is more often: of
 * ten thousand tables on two cores else ever more answers wait, and each round comes later than the one before. Only where
 * all its tables list ten rounds, so that none is gone by then unless they are played faster than one in 2.5 s: a
 * round that is late is better than one that is lost. Not where the house is being probed or an operator keeps answers from
 * being read, and not for longer than an hour, when something else may keep them.
 */
const BEHIND_AFTER_TURNS = 2;
const BEHIND_AFTER_AT_LEAST_MS = 2_000;
const TURNS_BEHIND = 5;
/** As a decimal, so that turns are divided as such. */
const POLLED_WITHIN_MS = "25000.0";
const LISTS_AT_LEAST = 10;
const BEHIND_FOR_MINUTES = 60;

/** The right to poll a shard of a house, alone, until it is saved, released or expired. */
export interface Lease {
  house: string;
  shard: number;
  /** Fencing token: whoever takes the lease next raises it, and what an older holder saves is refused. */
  epoch: bigint;
  /** Database time of the lease, as PostgreSQL writes it, to the microsecond. */
  now: string;
  /** When that time had come here, by `performance.now()`: what is timed from it is early rather than late. */
  takenAt: number;
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

/** Who asks for a lease; `byPage` where the house has tables with a page for each round. */
interface LeaseRequest {
  house: string;
  shard: number;
  timeoutMs: number;
  byPage?: boolean;
}

/** What a house is told whose answers are not read as fast as they come: its turn is left out. */
export const BEHIND: unique symbol = Symbol("behind");

/** Leases that are taken by one statement. */
const LEASES_AT_ONCE = 100;

const takeTogether = togetherBy<Sql, LeaseRequest, Lease | typeof BEHIND | null>(takeLeases, { items: LEASES_AT_ONCE });

/**
 * Takes the lease of a house's shard by the database's clock, or null where it is not to be polled now: another worker
 * does, the house asked to be left alone, its circuit is open, it is paused or disabled. An open circuit whose wait is
 * over becomes half open: this poll is its probe. {@link BEHIND} where answers of the shard wait to be read, see above.
 * Leases that are asked for at once are taken together.
 */
export function takeLease(sql: Sql, request: LeaseRequest): Promise<Lease | typeof BEHIND | null> {
  return takeTogether(sql, request);
}

type TakenRow = Circuit & { house: string; shard: number; epoch: bigint; now: string };

async function takeLeases(sql: Sql, asked: readonly LeaseRequest[]): Promise<(Lease | typeof BEHIND | null)[]> {
  const requests = new Map(asked.map((request) => [nameOf(request), request]));
  const wanted = [...requests.values()];
  // what is locked is saved or changed right now: its next turn is soon enough, and nobody else waits for it
  const free = await sql<(TakenRow | { house: string; shard: number; epoch: null })[]>`
    with free as materialized (
      select
        l.house_id,
        l.shard,
        a.lease_ms,
        l.circuit = 'closed'
          -- half a turn less, since a turn may begin a little early
          and l.last_poll_at > clock_timestamp() - interval '1 millisecond' * h.poll_every_ms
            * (least(${TURNS_BEHIND}, floor(${POLLED_WITHIN_MS}::numeric / h.poll_every_ms)) - 0.5)::float8
          and not exists (select from queue_controls where queue = 'normalize-rounds')
          and exists (
            select
            from tables t
            cross join lateral (${oldestUnread(sql)}) oldest
            where t.house_id = l.house_id
              and t.shard = l.shard
              and t.enabled
              and oldest.received_at > now() - ${BEHIND_FOR_MINUTES} * interval '1 minute'
              and oldest.received_at < now() - interval '1 millisecond'
                * greatest(${BEHIND_AFTER_TURNS} * h.poll_every_ms, ${BEHIND_AFTER_AT_LEAST_MS})
          )
          and not exists (
            select
            from tables t
            left join lateral (${oldestUnread(sql)}) oldest on true
            left join lateral (
              select items
              from payloads
              where table_id = t.id
                and kind = 'poll'
                and state = 'read'
                and received_at < coalesce(oldest.received_at, now())
                and received_at > now() - interval '1 day'
              order by received_at desc
              limit 1
            ) newest on true
            where t.house_id = l.house_id
              and t.shard = l.shard
              and t.enabled
              -- one that never answers lists nothing that could be lost
              and (oldest.received_at is not null or newest.items is not null)
              and coalesce(newest.items, 0) < ${LISTS_AT_LEAST}
          ) as is_behind
      from unnest(
        ${wanted.map(({ house }) => house)}::text[],
        ${wanted.map(({ shard }) => shard)}::integer[],
        ${wanted.map(({ timeoutMs }) => timeoutMs + LEASE_BEYOND_TIMEOUT_MS)}::float8[]
      ) as a (house, shard, lease_ms)
      join poll_leases l on l.house_id = a.house and l.shard = a.shard
      join houses h on h.id = l.house_id
      where h.enabled
        and h.paused_at is null
        and l.next_allowed_at <= clock_timestamp()
        and l.lease_until < clock_timestamp()
      for update of l skip locked
    ),
    taken as (
      update poll_leases l
      set
        lease_until = clock_timestamp() + free.lease_ms * interval '1 millisecond',
        lease_epoch = l.lease_epoch + 1,
        circuit = case l.circuit when 'open' then 'half_open' else l.circuit end
      from free
      where l.house_id = free.house_id
        and l.shard = free.shard
        and free.is_behind is not true
      returning
        l.house_id,
        l.shard,
        l.lease_epoch as epoch,
        clock_timestamp()::text as now,
        l.circuit as state,
        l.failures_in_row as "failuresInRow",
        l.recent,
        l.opened_times as "openedTimes",
        l.throttled_in_row as "throttledInRow"
    )
    select
      house_id as house, shard, taken.epoch, taken.now, taken.state, taken."failuresInRow", taken.recent,
      taken."openedTimes", taken."throttledInRow"
    from free
    left join taken using (house_id, shard)`;
  const takenAt = performance.now();
  const rows = free.filter((row) => row.epoch !== null);
  const taken = new Map(free.map((row) => [nameOf(row), row]));
  const tables = await listLeasedTables(
    sql,
    rows.map((row) => requests.get(nameOf(row)) ?? { ...row, byPage: false }),
  );
  return asked.map((request) => {
    const name = nameOf(request);
    const row = taken.get(name);
    if (row === undefined || requests.get(name) !== request) return null; // of equal requests one has it
    if (row.epoch === null) return BEHIND;
    const { house, shard, epoch, now, ...circuit } = row;
    return { house, shard, epoch, now, takenAt, circuit, tables: tables.get(name) ?? [] };
  });
}

/** A shard of a house, as a key. */
export function nameOf({ house, shard }: { house: string; shard: number }): string {
  return `${house}/${shard}`;
}

/** The oldest answer of `t` that is not read; what was read is older, so that a long backlog is not walked through. */
function oldestUnread(sql: Queryable) {
  return sql`
    select received_at
    from payloads
    where table_id = t.id
      and state = 'unread'
    order by requested_at, id
    limit 1`;
}

async function listLeasedTables(
  sql: Sql,
  of: readonly { house: string; shard: number; byPage?: boolean }[],
): Promise<Map<string, LeasedTable[]>> {
  if (of.length === 0) return new Map();
  const rows = await sql<(LeasedTable & { house: string; shard: number })[]>`
    select
      t.house_id as house,
      t.shard,
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
      a.by_page and exists (
        select
        from payloads p
        where p.table_id = t.id
          and p.state = 'unread'
      ) as "hasUnread",
      f.last_full_at is null
        or f.last_full_at < clock_timestamp() - ${FULL_REQUEST_EVERY_MINUTES} * interval '1 minute' as "fullIsDue"
    from unnest(
      ${of.map(({ house }) => house)}::text[],
      ${of.map(({ shard }) => shard)}::integer[],
      ${of.map(({ byPage = false }) => String(byPage))}::text[]::boolean[]
    ) as a (house, shard, by_page)
    join tables t on t.house_id = a.house and t.shard = a.shard and t.enabled
    join feeds f on f.table_id = t.id
    order by f.last_asked_at nulls first, t.position, t.id`;
  const tableOf = ({ house: _house, shard: _shard, ...table }: (typeof rows)[number]): LeasedTable => table;
  return new Map([...Map.groupBy(rows, nameOf)].map(([name, own]) => [name, own.map(tableOf)]));
}
