import type { Queryable } from "../../db/client.ts";
import {
  PACKED_PAYLOADS,
  PAYLOAD_MARKS,
  PAYLOADS,
  type PackedPayloadRow,
  type PayloadMark,
  type PayloadRow,
} from "../compute/rows.ts";
import type { Statement, TableRows } from "./table-rows.ts";

/** Stores payloads; a body that several tables share is stored with the first of them. */
export function insertPayloads(sql: Queryable, p: TableRows<PayloadRow>): Statement | null {
  if (p.rows.length === 0) return null;
  const { bytes, rows } = packBodies(p);
  return sql`
    insert into payloads (table_id, ${PAYLOADS.names}, served, body_of, body, read_at)
    select
      table_id, ${PAYLOADS.names}, served, body_of,
      case when body_of is null then substr(${bytes}, body_end - body_length + 1, body_length) end,
      case state when 'unread' then null else clock_timestamp() end
    from (${PACKED_PAYLOADS.rows({ tableIds: p.tableIds, rows })}) p`;
}

/** Bodies of payloads, concatenated; a shared one is included once, and `bodyOf` is the table that holds it. */
function packBodies({ tables, rows }: TableRows<PayloadRow>): { bytes: Buffer; rows: PackedPayloadRow[] } {
  const holders = new Map<string, { body: Uint8Array; end: number; table: number }>(); // by time of receipt
  const bodies: Uint8Array[] = [];
  let end = 0;
  const packed = rows.map((row, place): PackedPayloadRow => {
    const { body, receivedAt, served = [] } = row;
    const holder = holders.get(receivedAt);
    const isHeld = holder?.body === body;
    if (!isHeld) {
      end += body.length;
      bodies.push(body);
      holders.set(receivedAt, { body, end, table: tables[place] ?? 0 });
    }
    const [bodyEnd, bodyOf] = isHeld ? [holder.end, holder.table] : [end, null];
    return { ...row, served, bodyEnd, bodyLength: body.length, bodyOf };
  });
  return { bytes: Buffer.concat(bodies), rows: packed };
}

/** Updates stored payloads: unread ones are read now, others were read again. */
export function markPayloads(sql: Queryable, m: TableRows<PayloadMark>): Statement | null {
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
    from (${PAYLOAD_MARKS.rows(m)}) m
    where p.table_id = m.table_id
      and p.received_at = m.received_at`;
}
