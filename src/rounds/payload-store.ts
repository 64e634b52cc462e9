import type { Sql, Transaction } from "../db/client.ts";
import { togetherBy } from "../db/together.ts";

/** An answer that nobody has read yet. Times are texts of the database, so that no microsecond is lost. */
export interface UnreadPayload {
  id: bigint;
  tableId: number;
  requestedAt: string;
  receivedAt: string;
  /** ISO 8601: what the adapter compares the house's times with. */
  now: string;
  previousRequestedAt: string | null;
  /** What was asked for. */
  path: string;
  /** The stored answer right before it told nothing: it was refused, or had no items. Null where there is none. */
  followsUseless: boolean | null;
  /** Of the decompressed body. */
  sha256: string;
  /** Compressed. */
  body: Buffer;
}

/** What a house's batch may be: enough for hundreds of polls, little enough to be held in memory and under the locks. */
const MOST_PAYLOADS = 100;
const MOST_BYTES = 1024 * 1024;

/** Houses whose answers are looked for by one statement, and how many of them it gives: the oldest of each house first. */
const HOUSES_AT_ONCE = 50;
const PAYLOADS_AT_ONCE = 500;

const listTogether = togetherBy<Sql, string, UnreadPayload[]>(listUnreadOf, { items: HOUSES_AT_ONCE });

/**
 * The oldest unread answers of a house: of each feed in request order, at most 100 and 1 MiB, at least one where there is
 * any. Houses that are asked for at once are looked up together.
 */
export function listUnread(sql: Sql, house: string, signal?: AbortSignal): Promise<UnreadPayload[]> {
  return listTogether(sql, house, signal);
}

async function listUnreadOf(sql: Sql, houses: readonly string[]): Promise<UnreadPayload[][]> {
  const rows = await sql<(UnreadPayload & { place: number })[]>`
    with oldest as materialized (
      select a.place, o.*
      from unnest(${[...houses]}::text[]) with ordinality as a (house, place)
      cross join lateral (
        select
          p.id,
          p.received_at,
          row_number() over (order by p.requested_at, p.id) as rank,
          sum(p.bytes) over (order by p.requested_at, p.id) - p.bytes as bytes_before
        from tables t
        join payloads p on p.table_id = t.id
        where t.house_id = a.house
          and p.state = 'unread'
        order by p.requested_at, p.id
        limit ${MOST_PAYLOADS}
      ) o
      where o.bytes_before < ${MOST_BYTES}
      order by o.rank, a.place
      limit ${PAYLOADS_AT_ONCE}
    )
    select
      o.place::integer,
      p.id,
      p.table_id as "tableId",
      p.requested_at::text as "requestedAt",
      p.received_at::text as "receivedAt",
      utc_text(p.received_at) as now,
      p.previous_requested_at::text as "previousRequestedAt",
      p.path,
      before.useless as "followsUseless",
      p.sha256,
      p.body
    from oldest o
    join payloads p on p.received_at = o.received_at and p.id = o.id
    left join lateral (
      select q.state = 'refused' or q.items = 0 as useless
      from payloads q
      where q.table_id = p.table_id
        and q.kind = 'poll'
        and (q.received_at, q.id) < (p.received_at, p.id)
      order by q.received_at desc, q.id desc
      limit 1
    ) before on true
    order by o.place, p.requested_at, p.id`;
  const byPlace = Map.groupBy(rows, ({ place }) => place);
  return houses.map((_, at) => (byPlace.get(at + 1) ?? []).map(({ place: _place, ...payload }) => payload));
}

/** Which of these answers are still unread; to be asked under the locks of their tables. */
export async function listStillUnread(
  sql: Transaction,
  payloads: readonly { id: bigint; receivedAt: string }[],
): Promise<Set<bigint>> {
  const rows = await sql<{ id: bigint }[]>`
    select p.id
    from jsonb_to_recordset(${keysOf(payloads)}::text::jsonb) as asked (id bigint, received_at timestamptz)
    join payloads p on p.received_at = asked.received_at and p.id = asked.id
    where p.state = 'unread'`;
  return new Set(rows.map(({ id }) => id));
}

/** What became of an answer. */
export interface ReadPayload {
  id: bigint;
  receivedAt: string;
  refusedReason: string | null;
  items: number | null;
  newRounds: number | null;
  quarantined: number | null;
}

/** Marks answers as read, or as refused with the reason. */
export async function markPayloads(sql: Transaction, payloads: readonly ReadPayload[]): Promise<void> {
  const rows = payloads.map(({ id, receivedAt, refusedReason, items, newRounds, quarantined }) => ({
    id: String(id),
    received_at: receivedAt,
    refused_reason: refusedReason,
    items,
    new_rounds: newRounds,
    quarantined,
  }));
  await sql`
    update payloads p
    set
      state = case when m.refused_reason is null then 'read' else 'refused' end,
      read_at = coalesce(p.read_at, clock_timestamp()),
      refused_reason = m.refused_reason,
      items = m.items,
      new_rounds = m.new_rounds,
      quarantined = m.quarantined
    from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as m (
      id bigint, received_at timestamptz, refused_reason text, items integer, new_rounds integer, quarantined integer
    )
    where p.received_at = m.received_at
      and p.id = m.id`;
}

/** A page of a house's history as it came. */
export interface HistoryPage {
  tableId: number;
  /** Database time when the clock was read, and what a monotonic clock said since. */
  clock: string;
  requestedMs: number;
  receivedMs: number;
  path: string;
  status: number;
  contentType: string | null;
  bytes: number;
  sha256: string;
  /** Compressed. */
  body: Buffer;
  refusedReason: string | null;
}

/** Keeps a page of history verbatim, as read; gives what its rounds carry of it. */
export async function saveHistoryPage(
  sql: Transaction,
  page: HistoryPage,
): Promise<{ id: bigint; requestedAt: string; receivedAt: string }> {
  const at = (ms: number) => sql`${page.clock}::timestamptz + ${ms} * interval '1 millisecond'`;
  const [saved] = await sql<{ id: bigint; requestedAt: string; receivedAt: string }[]>`
    insert into payloads (
      table_id, kind, requested_at, received_at, path, status, content_type, bytes, sha256, body, state, read_at,
      refused_reason
    )
    values (
      ${page.tableId}, 'history', ${at(page.requestedMs)}, ${at(page.receivedMs)}, ${page.path}, ${page.status},
      ${page.contentType}, ${page.bytes}, ${page.sha256}, ${page.body},
      ${page.refusedReason === null ? "read" : "refused"}, clock_timestamp(), ${page.refusedReason}
    )
    returning id, requested_at::text as "requestedAt", received_at::text as "receivedAt"`;
  if (saved === undefined) throw new Error("a page of history was inserted and not given back");
  return saved;
}

/** Houses with answers unread for two seconds or more: their nudge was lost. */
export async function listHousesToNormalize(sql: Sql): Promise<{ house: string }[]> {
  return sql<{ house: string }[]>`
    select distinct t.house_id as house
    from payloads p
    join tables t on t.id = p.table_id
    where p.state = 'unread'
      and p.received_at < clock_timestamp() - interval '2 seconds'
    order by house`;
}

function keysOf(payloads: readonly { id: bigint; receivedAt: string }[]): string {
  return JSON.stringify(payloads.map(({ id, receivedAt }) => ({ id: String(id), received_at: receivedAt })));
}
