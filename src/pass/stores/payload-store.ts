import type { Pipeline, Queryable } from "../../db/client.ts";
import type { LockTimeout } from "../../tables/heads-store.ts";
import type { ReceivedPayload } from "../compute/response.ts";
import { type HeldLease, lockPasses } from "./write-heads-store.ts";
import { fromDatabase } from "../compute/times.ts";

/** A payload that has not been read yet. Times in UTC with seven digits. */
export interface UnreadPayload {
  requestedAt: string;
  receivedAt: string;
  previousRequestedAt: string | null;
  path: string;
  /** The previous stored payload proves nothing: it was refused, or had no items. */
  followsUseless: boolean;
  /** Another unread payload of the table was requested later. */
  isFollowed: boolean;
  /** Of the unpacked body, hex. */
  sha256: string;
  /** gzip. */
  body: Buffer;
}

/** Decompressed bytes of payloads per batch; a single larger one is allowed. */
const BYTES_AT_ONCE = 8_000_000;

/** The oldest unread payloads of a table, in request order; fewer than `limit` when they are large. */
export async function listUnread(sql: Queryable, tableId: number, limit: number): Promise<UnreadPayload[]> {
  const rows = await sql<(Omit<UnreadPayload, "sha256"> & { sha256: Buffer })[]>`
    select
      p.requested_at::text as "requestedAt",
      p.received_at::text as "receivedAt",
      p.previous_requested_at::text as "previousRequestedAt",
      p.path,
      coalesce(before.useless, false) as "followsUseless",
      p.followed as "isFollowed",
      p.sha256,
      payload_body(p.body, p.body_of, p.received_at) as body
    from (
      select
        *,
        lead(true, 1, false) over (order by requested_at) as followed,
        sum(bytes) over (order by requested_at) - bytes as earlier_bytes
      from (
        select *
        from payloads
        where table_id = ${tableId}
          and state = 'unread'
        order by requested_at
        limit ${limit + 1}
      ) oldest
      order by requested_at
      limit ${limit}
    ) p
    left join lateral (
      select q.state = 'refused' or q.items = 0 as useless
      from payloads q
      where q.table_id = ${tableId}
        and q.kind = 'poll'
        and q.received_at < p.received_at
      order by q.received_at desc
      limit 1
    ) before on true
    where p.earlier_bytes < ${BYTES_AT_ONCE}
    order by p.requested_at`;
  return rows.map(({ requestedAt, receivedAt, previousRequestedAt, sha256, ...row }) => ({
    ...row,
    requestedAt: fromDatabase(requestedAt),
    receivedAt: fromDatabase(receivedAt),
    previousRequestedAt: previousRequestedAt === null ? null : fromDatabase(previousRequestedAt),
    sha256: sha256.toString("hex"),
  }));
}

/** Tables of a house with unread payloads; first the one that waits longest, so that each gets its turn. */
export async function listUnreadTables(sql: Queryable, house: string): Promise<number[]> {
  const rows = await sql<{ id: number }[]>`
    select t.id
    from tables t
    cross join lateral (
      select min(requested_at) as since
      from payloads
      where table_id = t.id
        and state = 'unread'
    ) unread
    where t.house_id = ${house}
      and unread.since is not null
    order by unread.since, t.id`;
  return rows.map(({ id }) => id);
}

/** Houses with unread payloads. */
export async function listHousesToNormalize(sql: Queryable): Promise<{ house: string }[]> {
  return sql<{ house: string }[]>`
    select distinct t.house_id as house
    from payloads p
    join tables t on t.id = p.table_id
    where p.state = 'unread'
    order by t.house_id`;
}

/** Database time, and when it was received by `performance.now()`. */
export async function findTime(sql: Queryable): Promise<{ now: string; takenAt: number }> {
  const [row] = await sql<{ now: string }[]>`select clock_timestamp()::text as now`;
  if (row === undefined) throw new Error("expected the time of the database, found no row");
  return { now: row.now, takenAt: performance.now() };
}

/** Whether passes may settle forecasts: not while `score-accuracy` is paused. */
export async function maySettle(sql: Queryable): Promise<boolean> {
  const [paused] = await sql`select from queue_controls where queue = 'score-accuracy'`;
  return paused === undefined;
}

/** A payload of a poll that was read, to be compared with the rounds that are stored of it. */
export type ReadPayload = Pick<UnreadPayload, "receivedAt" | "path" | "sha256" | "body"> & { tableId: number };

/** A payload of a house that was read: the next one after a random time of the hour before a table's last response, null when there is none. */
export async function findReadPayload(sql: Queryable, house: string): Promise<ReadPayload | null> {
  return readPayloadOf(
    await sql<ReadPayloadRow[]>`
    with one as materialized (
      select t.id, h.responded_at - random() * interval '1 hour' as after
      from tables t
      join table_heads h on h.table_id = t.id
      where t.house_id = ${house}
        and t.enabled
      order by random()
      limit 1
    )
    select ${readPayloadColumns(sql)}
    from one
    cross join lateral (
      select *
      from payloads
      where table_id = one.id
        and received_at > one.after
        and ${isComparable(sql)}
      order by received_at
      limit 1
    ) p`,
  );
}

/** The payload of a table with this time, also if its day was dropped; null if it was deleted or read again since. */
export async function findReadPayloadAt(
  sql: Queryable,
  table: string,
  receivedAt: string,
): Promise<ReadPayload | null> {
  const wanted = sql`
    where table_id = t.id
      and received_at = ${receivedAt}::timestamptz
      and ${isComparable(sql)}`;
  return readPayloadOf(
    await sql<ReadPayloadRow[]>`
    select p.*
    from tables t
    cross join lateral (
      select ${readPayloadColumns(sql)}
      from payloads p
      ${wanted}
      union all
      select p.table_id, p.received_at::text, p.path, p.sha256, p.body
      from payloads_kept p
      ${wanted}
      limit 1
    ) p
    where t.house_id || '/' || t.game || '/' || t.market = ${table}`,
  );
}

type ReadPayloadRow = Omit<ReadPayload, "sha256"> & { sha256: Buffer };

function readPayloadColumns(sql: Queryable) {
  return sql`
    p.table_id as "tableId", p.received_at::text as "receivedAt", p.path, p.sha256,
    payload_body(p.body, p.body_of, p.received_at) as body`;
}

/** Of a payload with more refused items not all are in quarantine. */
function isComparable(sql: Queryable) {
  return sql`state = 'read' and kind = 'poll' and reread_at is null and quarantined < 100`;
}

function readPayloadOf([row]: readonly ReadPayloadRow[]): ReadPayload | null {
  if (row === undefined) return null;
  return { ...row, receivedAt: fromDatabase(row.receivedAt), sha256: row.sha256.toString("hex") };
}

/** The stored part of a round that a payload lists. */
export interface ListedRound {
  roundId: string;
  hundredths: number;
  rawValue: string;
  occurredAt: string | null;
  /** This payload brought it. */
  isFromHere: boolean;
}

/** Stored rounds by id, and ids with a conflict, a revision or a quarantined item. */
export async function listListed(
  sql: Queryable,
  tableId: number,
  { roundIds, receivedAt }: { roundIds: readonly string[]; receivedAt: string },
): Promise<{ rounds: Map<string, ListedRound>; kept: Set<string> }> {
  const ids = [...roundIds];
  const rounds = await sql<(Omit<ListedRound, "hundredths"> & { hundredths: bigint })[]>`
    select
      round_id as "roundId",
      hundredths,
      raw_value as "rawValue",
      occurred_at::text as "occurredAt",
      received_at = ${receivedAt}::timestamptz as "isFromHere"
    from (
      select *
      from rounds
      where table_id = ${tableId}
        and round_id = any(${ids}::text[])
      order by round_id -- makes the planner use the index by id
    ) r`;
  const kept = await sql<{ round_id: string }[]>`
    select round_id
    from conflicts
    where table_id = ${tableId}
      and round_id = any(${ids}::text[])
    union all
    select round_id
    from round_revision
    where table_id = ${tableId}
      and round_id = any(${ids}::text[])
    union all
    select round_id
    from quarantine
    where table_id = ${tableId}
      and round_id = any(${ids}::text[])`;
  return {
    rounds: new Map(
      rounds.map((row) => [
        row.roundId,
        {
          ...row,
          hundredths: Number(row.hundredths),
          occurredAt: row.occurredAt === null ? null : fromDatabase(row.occurredAt),
        },
      ]),
    ),
    kept: new Set(kept.map(({ round_id }) => round_id)),
  };
}

/** A response that cannot be read yet. */
type KeptPayload = ReceivedPayload & { tableId: number; requestedAt: string; receivedAt: string; error: string };

/**
 * Stores a payload unread, unless it equals the newest one of its table, and then moves the head, so that no cached state
 * reads what arrives after it. Returns whether it stored the payload.
 *
 * @throws the database's error if the lease is lost or the head is locked
 */
export async function keepUnreadPayload(
  pipeline: Pipeline,
  lease: HeldLease,
  payload: KeptPayload,
  lockTimeout: LockTimeout,
): Promise<boolean> {
  const { tableId, path, status, contentType, bytes, sha256, body, requestedAt, receivedAt, error } = payload;
  const [, , moved] = await pipeline.transact([
    pipeline`select set_config('lock_timeout', ${lockTimeout}, true)`,
    lockPasses(pipeline, [], [lease]),
    pipeline`
    with kept as (
      insert into payloads (
        table_id, received_at, kind, requested_at, path, status, content_type, bytes, sha256, body, state, error
      )
      select
        ${tableId}::integer, ${receivedAt}::text::timestamptz, 'poll', ${requestedAt}::text::timestamptz, ${path}::text,
        ${status}::integer, ${contentType}::text, ${bytes}::integer, decode(${sha256}, 'hex'), ${body}::bytea, 'unread',
        ${error}::text
      where decode(${sha256}, 'hex') is distinct from (
          select p.sha256
          from payloads p
          where p.table_id = ${tableId}
          order by p.received_at desc
          limit 1
        )
      on conflict do nothing
      returning table_id
    )
    update table_heads h
    set version = version + 1, changed_at = clock_timestamp()
    from kept
    where h.table_id = kept.table_id
    returning h.table_id`,
  ]);
  return moved.length > 0;
}
