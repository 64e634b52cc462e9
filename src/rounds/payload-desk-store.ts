import type { Queryable } from "../db/client.ts";

/** What became of an answer. */
export type PayloadState = "unread" | "read" | "refused";

/** What a list of answers is asked for; times are ISO 8601, null for all. */
export interface PayloadFilter {
  tableIds: readonly number[] | null;
  state: PayloadState | null;
  from: string | null;
  to: string | null;
}

/** The last answer of the page before; times are texts of the database, so that no microsecond is lost. */
export interface PayloadCursor {
  receivedAt: string;
  id: bigint;
}

/** An answer as it is listed. */
export interface ListedPayload {
  id: bigint;
  table: string;
  kind: "poll" | "history";
  requestedAt: string;
  receivedAt: string;
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
 * Answers by the time they arrived, newest first or oldest first, those kept beyond their day among them. Tables that are
 * named are looked up one by one, so that a silent one costs no walk through all others.
 */
export async function listPayloads(
  sql: Queryable,
  { tableIds, state, from, to }: PayloadFilter,
  { after, oldestFirst, limit }: { after: PayloadCursor | null; oldestFirst: boolean; limit: number },
): Promise<ListedPayload[]> {
  const place = sql`(${after?.receivedAt ?? "infinity"}::text::timestamptz, ${after?.id ?? 0n})`;
  const beyond = oldestFirst ? sql`(p.received_at, p.id) > ${place}` : sql`(p.received_at, p.id) < ${place}`;
  const order = oldestFirst ? sql`p.received_at, p.id` : sql`p.received_at desc, p.id desc`;
  const matching = sql`
    (${state}::text is null or p.state = ${state})
    and p.received_at >= ${from ?? "-infinity"}::text::timestamptz
    and p.received_at < ${to ?? "infinity"}::text::timestamptz
    and ${after === null ? sql`true` : beyond}`;
  const newest = (source: "payloads" | "payloads_kept") => {
    const columns = sql`
      p.id, p.table_id, p.kind, p.requested_at, p.received_at, p.status, p.bytes, p.state, p.refused_reason, p.items,
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
      p.id,
      t.house_id || '/' || t.game || '/' || t.market as "table",
      p.kind,
      p.requested_at::text as "requestedAt",
      p.received_at::text as "receivedAt",
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
      select distinct on (id) *
      from (
        select *, false as is_kept from (${newest("payloads")}) live
        union all
        select *, true from (${newest("payloads_kept")}) kept
      ) both_places
      order by id, is_kept
    ) p
    join tables t on t.id = p.table_id
    order by ${order}
    limit ${limit}`;
}

/** An answer with its body, compressed, and what was made of it. */
export interface WholePayload extends ListedPayload {
  tableId: number;
  previousRequestedAt: string | null;
  path: string;
  contentType: string | null;
  sha256: string;
  readAt: string | null;
  body: Buffer;
}

/** An answer by its id, from where it was stored or kept; null where it is not there any more. */
export async function findPayload(sql: Queryable, id: bigint): Promise<WholePayload | null> {
  const columns = sql`
    id, table_id, kind, requested_at, received_at, previous_requested_at, path, status, content_type, bytes, sha256,
    body, state, refused_reason, items, new_rounds, quarantined, reread_at`;
  const [row] = await sql<WholePayload[]>`
    select
      p.id,
      p.table_id as "tableId",
      t.house_id || '/' || t.game || '/' || t.market as "table",
      p.kind,
      p.requested_at::text as "requestedAt",
      p.received_at::text as "receivedAt",
      p.previous_requested_at::text as "previousRequestedAt",
      p.path,
      p.status,
      p.content_type as "contentType",
      p.bytes,
      p.sha256,
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
      select ${columns}, read_at, false as is_kept from payloads where id = ${id}
      union all
      select ${columns}, null::timestamptz, true from payloads_kept where id = ${id}
    ) p
    join tables t on t.id = p.table_id
    order by p.is_kept
    limit 1`;
  return row ?? null;
}

/** A round that an answer brought. */
export interface BroughtRound {
  seq: bigint;
  roundId: string;
  hundredths: bigint;
  color: string;
  late: boolean;
  afterGap: boolean;
  verified: boolean | null;
}

/** The first `limit` rounds that an answer brought, in seq order: on time by its arrival, late ones by its id. */
export async function listBroughtRounds(
  sql: Queryable,
  { id, tableId, receivedAt }: { id: bigint; tableId: number; receivedAt: string },
  limit: number,
): Promise<BroughtRound[]> {
  return sql<BroughtRound[]>`
    select seq, round_id as "roundId", hundredths, color, late, after_gap as "afterGap", verified
    from (
      select *
      from rounds
      where table_id = ${tableId}
        and received_at = ${receivedAt}::text::timestamptz
        and payload_id = ${id}
        and not late
      union all
      select *
      from rounds
      where table_id = ${tableId}
        and payload_id = ${id}
        and late
    ) brought
    order by seq
    limit ${limit}`;
}
