import type { Queryable, Transaction } from "../../db/client.ts";
import type { PayloadKey } from "./payload-list-store.ts";

/** The state of a quarantined item. */
export type ItemState = "open" | "released" | "discarded";

/** The filters of a list of items; null for all. */
export interface ItemFilter {
  tableIds: readonly number[] | null;
  state: ItemState | null;
  code: string | null;
}

/** The last item of the previous page. */
export interface ItemCursor {
  lastSeenAt: string;
  id: bigint;
}

/** An item with the reason why it is quarantined. */
export interface ListedItem {
  id: bigint;
  tableId: number;
  table: string;
  code: string;
  reason: string;
  roundId: string | null;
  /** The raw item, at most 16,384 characters of it; 240 in a list. */
  item: string;
  /** With the table the key of the payload that first contained it; null if none is known. */
  payloadReceivedAt: string | null;
  firstSeenAt: string;
  lastSeenAt: string;
  times: number;
  state: ItemState;
  decidedBy: string | null;
  decisionReason: string | null;
  decidedAt: string | null;
  /** The stored result of the same round in hundredths; null if it is not stored. */
  stored: bigint | null;
}

/** Characters of an item in a list: a page must stay small. */
const ITEM_IN_LIST = 240;
const ITEM_STORED = 16_384;

function columnsOf(sql: Queryable, { itemLength }: { itemLength: number }) {
  return sql`
    q.id,
    q.table_id as "tableId",
    t.house_id || '/' || t.game || '/' || t.market as "table",
    q.code,
    q.reason,
    q.round_id as "roundId",
    left(q.item, ${itemLength}) as item,
    utc_text(q.payload_received_at) as "payloadReceivedAt",
    utc_text(q.first_seen_at) as "firstSeenAt",
    q.last_seen_at::text as "lastSeenAt",
    q.times,
    q.state,
    q.decided_by as "decidedBy",
    q.decision_reason as "decisionReason",
    utc_text(q.decided_at) as "decidedAt",
    (select r.hundredths from rounds r where r.table_id = q.table_id and r.round_id = q.round_id) as stored`;
}

/** Items by when they were last seen, newest or oldest first, each with the beginning of the raw item. */
export async function listItems(
  sql: Queryable,
  { tableIds, state, code }: ItemFilter,
  { after, oldestFirst, limit }: { after: ItemCursor | null; oldestFirst: boolean; limit: number },
): Promise<ListedItem[]> {
  const place = sql`(${after?.lastSeenAt ?? "infinity"}::text::timestamptz, ${after?.id ?? 0n})`;
  const beyond = oldestFirst ? sql`(q.last_seen_at, q.id) > ${place}` : sql`(q.last_seen_at, q.id) < ${place}`;
  const order = oldestFirst ? sql`q.last_seen_at, q.id` : sql`q.last_seen_at desc, q.id desc`;
  const matching = sql`
    ${state === null ? sql`true` : sql`q.state = ${state}`}
    and (${code}::text is null or q.code = ${code})
    and ${after === null ? sql`true` : beyond}`;
  const found =
    tableIds === null
      ? sql`select q.* from quarantine q where ${matching} order by ${order} limit ${limit}`
      : sql`
        select own.*
        from unnest(${[...tableIds]}::integer[]) as asked (table_id)
        cross join lateral (
          select q.*
          from quarantine q
          where q.table_id = asked.table_id
            and ${matching}
          order by ${order}
          limit ${limit}
        ) own`;
  return sql<ListedItem[]>`
    select ${columnsOf(sql, { itemLength: ITEM_IN_LIST })}
    from (${found}) q
    join tables t on t.id = q.table_id
    order by ${order}
    limit ${limit}`;
}

/** Returns an item by its id; null if there is none. */
export async function findItem(sql: Queryable, id: bigint): Promise<ListedItem | null> {
  const [row] = await sql<ListedItem[]>`
    select ${columnsOf(sql, { itemLength: ITEM_STORED })}
    from quarantine q
    join tables t on t.id = q.table_id
    where q.id = ${id}`;
  return row ?? null;
}

/**
 * The items that first arrived in this payload, oldest first, at most `limit`, each with the beginning of the raw item.
 */
export async function listItemsOf(
  sql: Queryable,
  { tableId, receivedAt }: PayloadKey,
  limit: number,
): Promise<ListedItem[]> {
  return sql<ListedItem[]>`
    select ${columnsOf(sql, { itemLength: ITEM_IN_LIST })}
    from quarantine q
    join tables t on t.id = q.table_id
    where q.table_id = ${tableId}
      and q.payload_received_at = ${receivedAt}::text::timestamptz
    order by q.id
    limit ${limit}`;
}

/** The reasons why open items are quarantined, the most frequent first. */
export async function countItems(
  sql: Queryable,
  tableIds: readonly number[] | null,
): Promise<{ code: string; open: number }[]> {
  return sql<{ code: string; open: number }[]>`
    select code, count(*)::integer as open
    from quarantine
    where state = 'open'
      and ${tableIds === null ? sql`true` : sql`table_id = any(${[...tableIds]}::integer[])`}
    group by code
    order by open desc, code`;
}

/**
 * Stores an operator's decision on open items and returns those that were open. The caller holds the locks of their
 * tables.
 */
export async function decideItems(
  tx: Transaction,
  ids: readonly bigint[],
  decision: { state: "released" | "discarded"; by: string; reason: string },
): Promise<bigint[]> {
  const rows = await tx<{ id: bigint }[]>`
    update quarantine
    set
      state = ${decision.state},
      decided_by = ${decision.by},
      decision_reason = ${decision.reason},
      decided_at = clock_timestamp()
    where id = any(${ids.map(String)}::bigint[])
      and state = 'open'
    returning id`;
  return rows.map(({ id }) => id);
}

/** The facts of items that an operator wants to decide on, by id. */
export async function listItemsToDecide(
  sql: Queryable,
  ids: readonly bigint[],
): Promise<{ id: bigint; tableId: number; code: string; state: ItemState; decidedBy: string | null }[]> {
  return sql<{ id: bigint; tableId: number; code: string; state: ItemState; decidedBy: string | null }[]>`
    select id, table_id as "tableId", code, state, decided_by as "decidedBy"
    from quarantine
    where id = any(${ids.map(String)}::bigint[])
    order by id`;
}
