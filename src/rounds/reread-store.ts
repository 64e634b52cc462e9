import type { Queryable, Transaction } from "../db/client.ts";
import type { UnreadPayload } from "./payload-store.ts";

/** What a batch may be: as many as `normalize-rounds` takes of a house, and more bytes, as one runs at a time. */
const MOST_PAYLOADS = 100;
const MOST_BYTES = 16 * 1024 * 1024;

/** Answers to be read again; times are texts, `to` is not part of it. */
export interface RereadRange {
  house: string;
  tableId: number | null;
  from: string;
  to: string;
  state: "read" | "refused" | null;
}

/** Right after which answer a range is gone on with. */
export interface RereadPlace {
  requestedAt: string;
  id: bigint;
}

/** A stored answer to be read again, and what became of it when it was read last. */
export interface StoredPayload extends UnreadPayload {
  kind: "poll" | "history";
  state: "read" | "refused";
}

/** The next answers of a range in request order, those kept beyond their day among them; never one nobody has read yet. */
export async function listToReread(
  sql: Queryable,
  range: RereadRange,
  after: RereadPlace | null,
  most: number,
): Promise<StoredPayload[]> {
  const limit = Math.min(most, MOST_PAYLOADS);
  const matching = sql`
    t.house_id = ${range.house}
    and (${range.tableId}::integer is null or p.table_id = ${range.tableId})
    and p.requested_at >= ${range.from}::text::timestamptz
    and p.requested_at < ${range.to}::text::timestamptz
    -- an answer arrives after it was asked for, so that the days before need not be looked at
    and p.received_at >= ${range.from}::text::timestamptz
    and p.state <> 'unread'
    and (${range.state}::text is null or p.state = ${range.state})
    and (
      ${after === null}
      or (p.requested_at, p.id) > (${after?.requestedAt ?? "-infinity"}::text::timestamptz, ${after?.id ?? 0n})
    )`;
  const columns = sql`
    p.id, p.table_id, p.kind, p.state, p.requested_at, p.received_at, p.sha256, p.body, p.bytes, p.path`;
  return sql<StoredPayload[]>`
    with found as (
      select *
      from (
        select ${columns}
        from payloads p
        join tables t on t.id = p.table_id
        where ${matching}
        order by p.requested_at, p.id
        limit ${limit}
      ) newer
      union all
      select *
      from (
        select ${columns}
        from payloads_kept p
        join tables t on t.id = p.table_id
        where ${matching}
          and not exists (select from payloads q where q.received_at = p.received_at and q.id = p.id)
        order by p.requested_at, p.id
        limit ${limit}
      ) kept
    )
    select
      id,
      table_id as "tableId",
      kind,
      state,
      requested_at::text as "requestedAt",
      received_at::text as "receivedAt",
      utc_text(received_at) as now,
      null as "previousRequestedAt",
      null as "followsUseless",
      sha256,
      body,
      path
    from (
      select *, sum(bytes) over (order by requested_at, id) - bytes as bytes_before
      from found
      order by requested_at, id
      limit ${limit}
    ) o
    where bytes_before < ${MOST_BYTES}
    order by requested_at, id`;
}

/** How many answers a range has, at most `most` + 1 of them counted. */
export async function countToReread(sql: Queryable, range: RereadRange, most: number): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::integer as count
    from (
      select p.id
      from (
        select id, table_id, requested_at, received_at, state from payloads where received_at >= ${range.from}::text::timestamptz
        union
        select id, table_id, requested_at, received_at, state from payloads_kept where received_at >= ${range.from}::text::timestamptz
      ) p
      join tables t on t.id = p.table_id
      where t.house_id = ${range.house}
        and (${range.tableId}::integer is null or p.table_id = ${range.tableId})
        and p.requested_at >= ${range.from}::text::timestamptz
        and p.requested_at < ${range.to}::text::timestamptz
        and p.state <> 'unread'
        and (${range.state}::text is null or p.state = ${range.state})
      limit ${most + 1}
    ) counted`;
  return row?.count ?? 0;
}

/** What became of an answer that was read again; a count is null where it was refused. */
export interface RereadMark {
  id: bigint;
  receivedAt: string;
  state: "read" | "refused";
  refusedReason: string | null;
  items: number | null;
  /** Added to what it brought before. */
  newRounds: number;
  quarantined: number | null;
}

/** Writes down what became of answers, in both places where they can be. */
export async function markReread(tx: Transaction, marks: readonly RereadMark[]): Promise<void> {
  if (marks.length === 0) return;
  const rows = JSON.stringify(
    marks.map(({ id, receivedAt, state, refusedReason, items, newRounds, quarantined }) => ({
      id: String(id),
      received_at: receivedAt,
      state,
      refused_reason: refusedReason,
      items,
      new_rounds: newRounds,
      quarantined,
    })),
  );
  for (const place of ["payloads", "payloads_kept"] as const) {
    await tx`
      update ${tx(place)} p
      set
        state = m.state,
        refused_reason = m.refused_reason,
        items = coalesce(m.items, p.items),
        new_rounds = coalesce(p.new_rounds, 0) + m.new_rounds,
        quarantined = coalesce(m.quarantined, p.quarantined),
        reread_at = clock_timestamp()
      from jsonb_to_recordset(${rows}::text::jsonb) as m (
        id bigint, received_at timestamptz, state text, refused_reason text, items integer, new_rounds integer,
        quarantined integer
      )
      where p.received_at = m.received_at
        and p.id = m.id`;
  }
}

/** Which of these conflicts are listed already, as `table|round|other`. */
export async function listKnownConflicts(
  sql: Queryable,
  asked: readonly { tableId: number; roundId: string; other: number }[],
): Promise<Set<string>> {
  if (asked.length === 0) return new Set();
  const rows = await sql<{ key: string }[]>`
    select c.table_id || '|' || c.round_id || '|' || c.other_hundredths as key
    from unnest(
      ${asked.map(({ tableId }) => tableId)}::integer[],
      ${asked.map(({ roundId }) => roundId)}::text[],
      ${asked.map(({ other }) => String(other))}::bigint[]
    ) as a (table_id, round_id, other)
    join conflicts c on c.table_id = a.table_id and c.round_id = a.round_id and c.other_hundredths = a.other`;
  return new Set(rows.map(({ key }) => key));
}

/** Which of these items are in quarantine already, whatever was decided of them, as `table|hash|code`. */
export async function listKnownItems(
  sql: Queryable,
  asked: readonly { tableId: number; sha256: string; code: string }[],
): Promise<Set<string>> {
  if (asked.length === 0) return new Set();
  const rows = await sql<{ key: string }[]>`
    select q.table_id || '|' || q.item_sha256 || '|' || q.code as key
    from unnest(
      ${asked.map(({ tableId }) => tableId)}::integer[],
      ${asked.map(({ sha256 }) => sha256)}::text[],
      ${asked.map(({ code }) => code)}::text[]
    ) as a (table_id, sha256, code)
    join quarantine q on q.table_id = a.table_id and q.item_sha256 = a.sha256 and q.code = a.code`;
  return new Set(rows.map(({ key }) => key));
}

/** Items that an answer read again shows as good: by what they are, or by their round where this answer brought both. */
export interface ReadableItem {
  tableId: number;
  payloadId: bigint;
  sha256: string;
  roundId: string;
}

/** The open items of quarantine that are readable now. */
export async function listReleasable(sql: Queryable, readable: readonly ReadableItem[]): Promise<bigint[]> {
  if (readable.length === 0) return [];
  const rows = await sql<{ id: bigint }[]>`
    select distinct q.id
    from unnest(
      ${readable.map(({ tableId }) => tableId)}::integer[],
      ${readable.map(({ payloadId }) => String(payloadId))}::bigint[],
      ${readable.map(({ sha256 }) => sha256)}::text[],
      ${readable.map(({ roundId }) => roundId)}::text[]
    ) as a (table_id, payload_id, sha256, round_id)
    join quarantine q on q.table_id = a.table_id
      and (q.item_sha256 = a.sha256 or (q.payload_id = a.payload_id and q.round_id = a.round_id))
    where q.state = 'open'`;
  return rows.map(({ id }) => id);
}

/** Lets items out of quarantine that were read after all. */
export async function releaseItems(tx: Transaction, ids: readonly bigint[], by: string): Promise<void> {
  if (ids.length === 0) return;
  await tx`
    update quarantine
    set
      state = 'released',
      decided_by = ${by},
      decision_reason = 'its answer was read again, and it can be read now',
      decided_at = clock_timestamp()
    where id = any(${ids.map(String)}::bigint[])
      and state = 'open'`;
}
