import type { Queryable } from "../../db/client.ts";
import type { CompletePassRows as PassRows } from "../compute/state.ts";
import { plainArray } from "./arrays.ts";
import type { Statement, TableRows } from "./table-rows.ts";

/** Stores payloads; a body that several tables share is stored with the first of them. */
export function insertPayloads(sql: Queryable, p: TableRows<PassRows["payloads"][number]>): Statement | null {
  if (p.rows.length === 0) return null;
  const bodies = packBodies(p);
  return sql`
    insert into payloads (
      table_id, received_at, kind, requested_at, previous_requested_at, path, status, content_type, bytes, sha256, body,
      body_of, served, state, read_at, refused_reason, error, items, new_rounds, quarantined
    )
    select
      table_id, received_at, kind, requested_at, previous_requested_at, path, status, content_type, bytes,
      substr(${p.hashes(({ sha256 }) => sha256)}, (32 * place - 31)::integer, 32),
      case when body_of is null then substr(${bodies.bytes}, body_end - body_length + 1, body_length) end, body_of,
      served::integer[], state, case state when 'unread' then null else clock_timestamp() end, refused_reason, error,
      items, new_rounds, quarantined
    from unnest(
      ${p.tableIds}::integer[],
      ${p.plain(({ receivedAt }) => receivedAt)}::timestamptz[],
      ${p.plain(({ kind }) => kind)}::text[],
      ${p.plain(({ requestedAt }) => requestedAt)}::timestamptz[],
      ${p.plain((row) => row.previousRequestedAt)}::timestamptz[],
      ${p.text(({ path }) => path)}::text[],
      ${p.plain(({ status }) => status)}::integer[],
      ${p.text(({ contentType }) => contentType)}::text[],
      ${p.plain(({ bytes }) => bytes)}::integer[],
      ${plainArray(bodies.ends)}::integer[],
      ${p.plain(({ body }) => body.length)}::integer[],
      ${plainArray(bodies.of)}::integer[],
      ${p.arrays(({ served }) => served ?? [])}::text[],
      ${p.plain(({ state }) => state)}::text[],
      ${p.text(({ refusedReason }) => refusedReason)}::text[],
      ${p.text(({ error }) => error)}::text[],
      ${p.plain(({ items }) => items)}::integer[],
      ${p.plain(({ newRounds }) => newRounds)}::integer[],
      ${p.plain(({ quarantined }) => quarantined)}::integer[]
    ) with ordinality as p (
      table_id, received_at, kind, requested_at, previous_requested_at, path, status, content_type, bytes, body_end,
      body_length, body_of, served, state, refused_reason, error, items, new_rounds, quarantined, place
    )`;
}

/** Bodies of payloads, concatenated; a shared one is included once, and `of` is the table that holds it. */
function packBodies({ tables, rows }: TableRows<PassRows["payloads"][number]>): {
  bytes: Buffer;
  ends: number[];
  of: (number | null)[];
} {
  const holders = new Map<string, { body: Uint8Array; end: number; table: number }>(); // by time of receipt
  const packed = { bodies: [] as Uint8Array[], ends: [] as number[], of: [] as (number | null)[] };
  let end = 0;
  for (const [place, { body, receivedAt }] of rows.entries()) {
    const holder = holders.get(receivedAt);
    const isHeld = holder?.body === body;
    if (!isHeld) {
      end += body.length;
      packed.bodies.push(body);
      holders.set(receivedAt, { body, end, table: tables[place] ?? 0 });
    }
    packed.ends.push(isHeld ? holder.end : end);
    packed.of.push(isHeld ? holder.table : null);
  }
  return { bytes: Buffer.concat(packed.bodies), ends: packed.ends, of: packed.of };
}

/** Updates stored payloads: unread ones are read now, others were read again. */
export function markPayloads(sql: Queryable, m: TableRows<PassRows["marks"][number]>): Statement | null {
  if (m.rows.length === 0) return null;
  return sql`
    update payloads p
    set
      state = m.state,
      read_at = coalesce(p.read_at, clock_timestamp()),
      reread_at = case p.state when 'unread' then p.reread_at else clock_timestamp() end,
      refused_reason = m.refused_reason,
      error = null,
      items = m.items,
      new_rounds = m.new_rounds,
      quarantined = m.quarantined
    from unnest(
      ${m.tableIds}::integer[],
      ${m.plain(({ receivedAt }) => receivedAt)}::timestamptz[],
      ${m.plain(({ state }) => state)}::text[],
      ${m.text(({ refusedReason }) => refusedReason)}::text[],
      ${m.plain(({ items }) => items)}::integer[],
      ${m.plain(({ newRounds }) => newRounds)}::integer[],
      ${m.plain(({ quarantined }) => quarantined)}::integer[]
    ) as m (table_id, received_at, state, refused_reason, items, new_rounds, quarantined)
    where p.table_id = m.table_id
      and p.received_at = m.received_at`;
}
