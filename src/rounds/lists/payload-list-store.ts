import type { Queryable } from "../../db/client.ts";

/** The state of a payload. */
export type PayloadState = "unread" | "read" | "refused";

/** The filters of a list of payloads; times are ISO 8601, null for all. */
export interface PayloadFilter {
  tableIds: readonly number[] | null;
  state: PayloadState | null;
  from: string | null;
  to: string | null;
}

/** The key of a payload. The time is a text, because a Date would lose its microseconds. */
export interface PayloadKey {
  tableId: number;
  receivedAt: string;
}

/** A payload in a list. */
export interface ListedPayload extends PayloadKey {
  table: string;
  kind: "poll" | "history";
  requestedAt: string;
  status: number;
  bytes: number;
  state: PayloadState;
  refusedReason: string | null;
  items: number | null;
  newRounds: number | null;
  quarantined: number | null;
  rereadAt: string | null;
  /** It was kept beyond its day. */
  isKept: boolean;
}

/**
 * Payloads by the time they arrived, newest or oldest first, including those kept beyond their day. With a filter by
 * table each table is queried by itself, so that a silent table does not cause a walk through all others.
 */
export async function listPayloads(
  sql: Queryable,
  { tableIds, state, from, to }: PayloadFilter,
  { after, oldestFirst, limit }: { after: PayloadKey | null; oldestFirst: boolean; limit: number },
): Promise<ListedPayload[]> {
  const place = sql`(${after?.receivedAt ?? "infinity"}::text::timestamptz, ${after?.tableId ?? 0})`;
  const beyond = sql`(p.received_at, p.table_id) ${oldestFirst ? sql`>` : sql`<`} ${place}`;
  const order = oldestFirst ? sql`p.received_at, p.table_id` : sql`p.received_at desc, p.table_id desc`;
  const matching = sql`
    (${state}::text is null or p.state = ${state})
    and p.received_at >= ${from ?? "-infinity"}::text::timestamptz
    and p.received_at < ${to ?? "infinity"}::text::timestamptz
    and ${after === null ? sql`true` : beyond}`;
  const newest = (source: "payloads" | "payloads_kept") => {
    const columns = sql`
      p.table_id, p.kind, p.requested_at, p.received_at, p.status, p.bytes, p.state, p.refused_reason, p.items,
      p.new_rounds, p.quarantined, p.reread_at`;
    if (tableIds === null)
      return sql`select ${columns} from ${sql(source)} p where ${matching} order by ${order} limit ${limit}`;
    return sql`
      select own.*
      from unnest(${[...tableIds]}::integer[]) as asked (table_id)
      cross join lateral (
        select ${columns}
        from ${sql(source)} p
        where p.table_id = asked.table_id
          and ${matching}
        order by ${order}
        limit ${limit}
      ) own`;
  };
  return sql<ListedPayload[]>`
    select
      p.table_id as "tableId",
      t.house_id || '/' || t.game || '/' || t.market as "table",
      p.kind,
      utc_text(p.requested_at) as "requestedAt",
      utc_text(p.received_at) as "receivedAt",
      p.status,
      p.bytes,
      p.state,
      p.refused_reason as "refusedReason",
      p.items,
      p.new_rounds as "newRounds",
      p.quarantined,
      utc_text(p.reread_at) as "rereadAt",
      p.is_kept as "isKept"
    from (
      select distinct on (table_id, received_at) *
      from (
        select *, false as is_kept from (${newest("payloads")}) live
        union all
        select *, true from (${newest("payloads_kept")}) kept
      ) both_places
      order by table_id, received_at, is_kept
    ) p
    join tables t on t.id = p.table_id
    order by ${order}
    limit ${limit}`;
}

/** A payload with its compressed body and what was read from it. */
export interface WholePayload extends ListedPayload {
  previousRequestedAt: string | null;
  path: string;
  contentType: string | null;
  sha256: string;
  readAt: string | null;
  body: Buffer;
}

/** Returns a payload from the table that holds it; null if it has expired. */
export async function findPayload(sql: Queryable, { tableId, receivedAt }: PayloadKey): Promise<WholePayload | null> {
  const matching = sql`table_id = ${tableId} and received_at = ${receivedAt}::text::timestamptz`;
  const columns = sql`
    table_id, kind, requested_at, received_at, previous_requested_at, path, status, content_type, bytes, sha256,
    state, refused_reason, items, new_rounds, quarantined, reread_at`;
  const body = sql`payload_body(body, body_of, received_at) as body`;
  const [row] = await sql<WholePayload[]>`
    select
      p.table_id as "tableId",
      t.house_id || '/' || t.game || '/' || t.market as "table",
      p.kind,
      utc_text(p.requested_at) as "requestedAt",
      utc_text(p.received_at) as "receivedAt",
      utc_text(p.previous_requested_at) as "previousRequestedAt",
      p.path,
      p.status,
      p.content_type as "contentType",
      p.bytes,
      encode(p.sha256, 'hex') as sha256,
      p.body,
      p.state,
      p.refused_reason as "refusedReason",
      p.items,
      p.new_rounds as "newRounds",
      p.quarantined,
      utc_text(p.read_at) as "readAt",
      utc_text(p.reread_at) as "rereadAt",
      p.is_kept as "isKept"
    from (
      select ${columns}, ${body}, read_at, false as is_kept from payloads where ${matching}
      union all
      select ${columns}, body, null::timestamptz, true from payloads_kept where ${matching}
    ) p
    join tables t on t.id = p.table_id
    order by p.is_kept
    limit 1`;
  return row ?? null;
}

/** A table that a response served: with its own payload row, or without one if it listed nothing new for it. */
export interface ServedTable {
  tableId: number;
  table: string;
  hasPayload: boolean;
  newRounds: number | null;
}

/**
 * The other tables that the response of a payload served, at most `limit`, and how many there are: tables of a shard with
 * the same request share one stored response.
 */
export async function listServedTables(
  sql: Queryable,
  { tableId, receivedAt }: PayloadKey,
  limit: number,
): Promise<{ tables: ServedTable[]; total: number }> {
  const rows = await sql<(ServedTable & { total: number })[]>`
    -- by the tables of the house: payloads have no index by time alone
    with stored as (
      select p.table_id, p.body_of, p.served, p.new_rounds
      from tables own
      join tables t on t.house_id = own.house_id
      join payloads p on p.table_id = t.id and p.received_at = ${receivedAt}::text::timestamptz
      where own.id = ${tableId}
    ),
    response as (
      select table_id, new_rounds, served
      from stored
      where coalesce(body_of, table_id) = (
        select coalesce(body_of, table_id)
        from stored
        where table_id = ${tableId}
          or ${tableId} = any(served)
        limit 1
      )
    ),
    others as (
      select table_id, true as has_payload, new_rounds
      from response
      union all
      select s.table_id, false, null
      from response, unnest(response.served) as s (table_id)
      where s.table_id not in (select table_id from response)
    )
    select
      o.table_id as "tableId",
      t.house_id || '/' || t.game || '/' || t.market as "table",
      o.has_payload as "hasPayload",
      o.new_rounds as "newRounds",
      count(*) over ()::integer as total
    from others o
    join tables t on t.id = o.table_id
    where o.table_id <> ${tableId}
    order by o.has_payload desc, t.position
    limit ${limit}`;
  const tables = rows.map((row) => ({
    tableId: row.tableId,
    table: row.table,
    hasPayload: row.hasPayload,
    newRounds: row.newRounds,
  }));
  return { tables, total: rows[0]?.total ?? 0 };
}

/** A round that a payload brought. */
export interface BroughtRound {
  seq: bigint;
  roundId: string;
  hundredths: bigint;
  color: string;
  late: boolean;
  afterGap: boolean;
  verified: boolean | null;
}

/** The first `limit` rounds that a payload brought, in seq order. */
export async function listBroughtRounds(
  sql: Queryable,
  { tableId, receivedAt }: PayloadKey,
  limit: number,
): Promise<BroughtRound[]> {
  return sql<BroughtRound[]>`
    select seq, round_id as "roundId", hundredths, color, late, after_gap as "afterGap", verified
    from named_rounds
    where table_id = ${tableId}
      and received_at = ${receivedAt}::text::timestamptz
      and source in ('poll', 'history')
    order by seq
    limit ${limit}`;
}
