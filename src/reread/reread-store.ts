import type { Queryable, Transaction } from "../db/client.ts";
import { fromDatabase } from "../pass/compute/times.ts";
import type { PayloadMark } from "../pass/compute/rows.ts";

/** The limits of a batch; one runs at a time. */
const MOST_PAYLOADS = 100;
const MOST_BYTES = 16 * 1024 * 1024;

/** The payloads to read again; times are texts, `to` is excluded. */
export interface RereadRange {
  house: string;
  tableId: number | null;
  from: string;
  to: string;
  state: "read" | "refused" | null;
}

/** The payload after which a range continues. */
export interface RereadPlace {
  requestedAt: string;
  tableId: number;
}

/** A stored payload to read again, and its state from the last time. Times are UTC with seven digits. */
export interface StoredPayload {
  tableId: number;
  requestedAt: string;
  receivedAt: string;
  path: string;
  /** Of the uncompressed body, hex. */
  sha256: string;
  /** gzip. */
  body: Buffer;
  state: "read" | "refused";
  /** Rounds that it has brought so far. */
  newRounds: number;
  /** The table shares the payload of another table and has no row of it, because it listed nothing new. */
  isServed: boolean;
}

/** The next payloads of a range in request order, including those kept beyond their day; never an unread one. */
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
    -- a response arrives after its request, so earlier days are skipped
    and p.received_at >= ${range.from}::text::timestamptz
    and p.state <> 'unread'
    and (${range.state}::text is null or p.state = ${range.state})
    and (
      ${after === null}
      or (p.requested_at, p.table_id) > (${after?.requestedAt ?? "-infinity"}::text::timestamptz, ${after?.tableId ?? 0})
    )`;
  const columns = sql`
    p.table_id, p.state, p.requested_at, p.received_at, p.sha256, p.bytes, p.path, p.new_rounds`;
  const served = servedPayloads(sql);
  const rows = await sql<(Omit<StoredPayload, "sha256"> & { sha256: Buffer })[]>`
    with found as (
      select *
      from (
        select ${columns}, payload_body(p.body, p.body_of, p.received_at) as body, false as served
        from payloads p
        join tables t on t.id = p.table_id
        where ${matching}
        order by p.requested_at, p.table_id
        limit ${limit}
      ) newer
      union all
      select *
      from (
        select ${columns}, payload_body(p.body, p.body_of, p.received_at) as body, true as served
        from (${served}) p
        join tables t on t.id = p.table_id
        where ${matching}
        order by p.requested_at, p.table_id
        limit ${limit}
      ) shared
      union all
      select *
      from (
        select ${columns}, p.body, false as served
        from payloads_kept p
        join tables t on t.id = p.table_id
        where ${matching}
          and not exists (select from payloads q where q.table_id = p.table_id and q.received_at = p.received_at)
        order by p.requested_at, p.table_id
        limit ${limit}
      ) kept
    )
    select
      table_id as "tableId",
      state,
      requested_at::text as "requestedAt",
      received_at::text as "receivedAt",
      sha256,
      body,
      path,
      coalesce(new_rounds, 0) as "newRounds",
      served as "isServed"
    from (
      select *, sum(bytes) over (order by requested_at, table_id) - bytes as bytes_before
      from found
      order by requested_at, table_id
      limit ${limit}
    ) o
    where bytes_before < ${MOST_BYTES}
    order by requested_at, table_id`;
  return rows.map((row) => ({
    ...row,
    requestedAt: fromDatabase(row.requestedAt),
    receivedAt: fromDatabase(row.receivedAt),
    sha256: row.sha256.toString("hex"),
  }));
}

/**
 * Payloads for each table that shares the response of another table without its own row, in the columns that a
 * re-read needs.
 */
function servedPayloads(sql: Queryable) {
  return sql`
    select
      other.table_id, 'read'::text as state, q.requested_at, q.received_at, q.sha256, q.body, q.body_of, q.bytes, q.path,
      0 as new_rounds
    from payloads q
    cross join unnest(q.served) as other (table_id)
    where not exists (select from payloads own where own.table_id = other.table_id and own.received_at = q.received_at)`;
}

/** Adds a row for each table that shares the payload of another table, so that the results of reading it are stored. */
export async function addServedRows(tx: Transaction, payloads: readonly StoredPayload[]): Promise<void> {
  const served = payloads.filter(({ isServed }) => isServed);
  if (served.length === 0) return;
  await tx`
    insert into payloads (
      table_id, received_at, kind, requested_at, previous_requested_at, path, status, content_type, bytes, sha256, body_of,
      state, read_at, new_rounds, quarantined
    )
    select
      s.table_id, p.received_at, p.kind, p.requested_at, p.previous_requested_at, p.path, p.status, p.content_type,
      p.bytes, p.sha256, coalesce(p.body_of, p.table_id), 'read', coalesce(p.read_at, clock_timestamp()), 0, 0
    from unnest(
      ${served.map(({ tableId }) => tableId)}::integer[],
      ${served.map(({ receivedAt }) => receivedAt)}::text[]::timestamptz[]
    ) as s (table_id, received_at)
    join payloads p on p.received_at = s.received_at and s.table_id = any(p.served)
    on conflict do nothing`;
}

/**
 * The results of payloads by their place, for a caller that has locked their heads: another run may have stored others since
 * they were listed.
 */
export async function listResults(
  tx: Transaction,
  payloads: readonly StoredPayload[],
): Promise<Map<number, Pick<StoredPayload, "state" | "newRounds">>> {
  const rows = await tx<(Pick<StoredPayload, "state" | "newRounds"> & { place: number })[]>`
    select (a.place - 1)::integer as place, p.state, coalesce(p.new_rounds, 0) as "newRounds"
    from unnest(
      ${payloads.map(({ tableId }) => tableId)}::integer[],
      ${payloads.map(({ receivedAt }) => receivedAt)}::text[]::timestamptz[]
    ) with ordinality as a (table_id, received_at, place)
    cross join lateral (
      select state, new_rounds
      from payloads
      where table_id = a.table_id
        and received_at = a.received_at
      union all
      select state, new_rounds
      from payloads_kept
      where table_id = a.table_id
        and received_at = a.received_at
      limit 1
    ) p`;
  return new Map(rows.map(({ place, ...result }) => [place, result]));
}

/** How many payloads a range has; counting stops at `most` + 1. */
export async function countToReread(sql: Queryable, range: RereadRange, most: number): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::integer as count
    from (
      select
      from (
        select table_id, requested_at, received_at, state from payloads where received_at >= ${range.from}::text::timestamptz
        union
        select table_id, requested_at, received_at, state
        from (${servedPayloads(sql)}) served
        where received_at >= ${range.from}::text::timestamptz
        union
        select table_id, requested_at, received_at, state from payloads_kept where received_at >= ${range.from}::text::timestamptz
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

/** Stores the results for payloads that are kept beyond their day; a pass stores those of the others. */
export async function markKept(tx: Transaction, tableId: number, marks: readonly PayloadMark[]): Promise<void> {
  for (const { receivedAt, state, refusedReason, items, newRounds, quarantined } of marks) {
    await tx`
      update payloads_kept
      set
        state = ${state},
        refused_reason = ${refusedReason},
        items = ${items},
        new_rounds = ${newRounds},
        quarantined = ${quarantined},
        reread_at = clock_timestamp()
      where table_id = ${tableId}
        and received_at = ${receivedAt}::timestamptz`;
  }
}
