import type { AnswerRow } from "./answer-rows.ts";
import type { Transaction } from "../db/client.ts";
import type { Lease } from "./lease-store.ts";

/**
 * Inserts new bodies and updates the feeds, whose rows the caller has locked, since normalize-rounds writes them too. Each
 * feed has one payload at most. Returns the ids of the stored payloads by table.
 */
export async function saveFeeds(
  sql: Transaction,
  rows: readonly (AnswerRow & { lease: Lease })[],
): Promise<Map<number, bigint>> {
  if (rows.length === 0) return new Map();
  const ids = rows.map(({ tableId }) => tableId);
  const saved = await sql<{ id: bigint; table_id: number }[]>`
    with answers as (
      select
        a.*,
        a.leased_at::timestamptz + a.requested_ms * interval '1 millisecond' as requested_at,
        a.leased_at::timestamptz + a.received_ms * interval '1 millisecond' as received_at,
        f.last_sha256,
        f.last_answer_at,
        f.refused_since
      from unnest(
        ${ids}::integer[],
        ${rows.map(({ lease }) => lease.now)}::text[],
        ${rows.map(({ absence }) => absence)}::text[],
        ${rows.map(({ ahead }) => String(ahead))}::text[]::boolean[],
        ${rows.map(({ requestedMs }) => requestedMs)}::float8[],
        ${rows.map(({ receivedMs }) => receivedMs)}::float8[],
        ${rows.map(({ path }) => path)}::text[],
        ${rows.map(({ status }) => status)}::integer[],
        ${rows.map(({ contentType }) => contentType)}::text[],
        ${rows.map(({ etag }) => etag)}::text[],
        ${rows.map(({ lastModified }) => lastModified)}::text[],
        ${rows.map(({ bytes }) => bytes)}::integer[],
        ${rows.map(({ sha256 }) => sha256)}::text[],
        ${rows.map(({ knownSha256 }) => knownSha256)}::text[],
        ${rows.map(({ body }) => (body === null ? null : `\\x${body.toString("hex")}`))}::text[]
      ) as a (
        table_id, leased_at, absence, ahead, requested_ms, received_ms, path, status, content_type, etag, last_modified,
        bytes, sha256, known_sha256, body
      )
      join feeds f on f.table_id = a.table_id
      where f.last_sha256 is not distinct from a.known_sha256
    ),
    inserted as (
      insert into payloads (
        table_id, kind, requested_at, received_at, previous_requested_at, path, status, content_type, bytes, sha256, body
      )
      select
        table_id, 'poll', requested_at, received_at, case when not ahead then last_answer_at end, path, status,
        content_type, bytes, sha256, body::bytea
      from answers
      where body is not null
      returning id, table_id
    ),
    moved as (
      update feeds f
      set
        last_asked_at = a.requested_at,
        etag = case when a.sha256 is null then f.etag else a.etag end,
        last_modified = case when a.sha256 is null then f.last_modified else a.last_modified end,
        last_full_at = case when a.sha256 is null then f.last_full_at else a.requested_at end,
        last_sha256 = coalesce(a.sha256, f.last_sha256),
        last_path = case when a.sha256 is null then f.last_path else a.path end,
        last_answer_at = case
          when a.absence = 'forgotten' then null
          when a.absence = 'told' and (a.body is not null or a.refused_since is null) then a.requested_at
          else f.last_answer_at
        end,
        refused_since = case when a.body is null then f.refused_since end
      from answers a
      where f.table_id = a.table_id
    )
    select id, table_id
    from inserted`;
  return new Map(saved.map(({ id, table_id }) => [table_id, id]));
}

/** Locks the feeds of tables, in id order, for who is to change several of them. */
export async function lockFeeds(sql: Transaction, tableIds: readonly number[]): Promise<void> {
  await sql`
    select
    from feeds
    where table_id = any(${[...tableIds]}::integer[])
    order by table_id
    for no key update`;
}

/**
 * Tells a feed that one of its polled answers could not be read, in the transaction that marks the payload refused.
 *
 * An unreadable answer proves nothing about which rounds were not there yet. So the answer after it gets no
 * `previous_requested_at`: where that one is already stored, it is taken from it here, else the feed forgets its
 * `last_answer_at`. While the refused answer is the feed's newest, no ETag is sent for it and its repeats do not count
 * as answers; the next different one ends that. Waits for a poll that is saving to the same feed.
 */
export async function noteRefusedAnswer(
  sql: Transaction,
  { tableId, payloadId, sha256 }: { tableId: number; payloadId: bigint; sha256: string },
): Promise<void> {
  await sql`
    update feeds
    set
      last_answer_at = case when last_sha256 = ${sha256} then null else last_answer_at end,
      refused_since = case when last_sha256 = ${sha256} then coalesce(refused_since, clock_timestamp()) else refused_since end
    where table_id = ${tableId}`;
  await sql`
    update payloads
    set previous_requested_at = null
    where table_id = ${tableId}
      and state = 'unread'
      and id = (
        select min(id)
        from payloads
        where table_id = ${tableId}
          and state = 'unread'
          and id > ${payloadId}
      )`;
}
