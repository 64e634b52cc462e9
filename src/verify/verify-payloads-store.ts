import type { Transaction } from "../db/client.ts";

/** A stored response body and the hash that was computed when it was received. */
export interface StoredBody {
  tableId: number;
  table: string;
  /** ISO 8601 with microseconds: with the table the key of the payload. */
  receivedAt: string;
  /** gzip; null if the payload that should hold it is gone. */
  body: Buffer | null;
  /** Hex, of the payload itself. */
  sha256: string;
}

/**
 * Bodies in order of table and time, after a place, at most `limit`: of one table those of every response that served it,
 * else each stored body once, and payloads whose body another table should hold but does not.
 */
export async function listStoredBodies(
  tx: Transaction,
  tableId: number | undefined,
  { after, limit }: { after: Pick<StoredBody, "tableId" | "receivedAt"> | null; limit: number },
): Promise<StoredBody[]> {
  const place = afterPlace(tx, after);
  const own =
    tableId === undefined
      ? tx`p.body is not null or not exists (
          select
          from payloads holder
          where holder.table_id = p.body_of
            and holder.received_at = p.received_at
            and holder.body is not null
            and holder.sha256 = p.sha256
        )`
      : tx`p.table_id = ${tableId} or ${tableId} = any(p.served)`;
  return tx<StoredBody[]>`
    select
      p.table_id as "tableId",
      t.house_id || '/' || t.game || '/' || t.market as "table",
      utc_text(p.received_at) as "receivedAt",
      p.body,
      encode(p.sha256, 'hex') as sha256
    from (
      select p.table_id, p.received_at, payload_body(p.body, p.body_of, p.received_at) as body, p.sha256
      from payloads p
      where (${own})
        and ${place}
      union all
      select p.table_id, p.received_at, p.body, p.sha256
      from payloads_kept p
      where ${tableId === undefined ? tx`true` : tx`p.table_id = ${tableId}`}
        and ${place}
        and not exists (select from payloads live where live.table_id = p.table_id and live.received_at = p.received_at)
    ) p
    join tables t on t.id = p.table_id
    order by p.table_id, p.received_at
    limit ${limit}`;
}

function afterPlace(tx: Transaction, after: Pick<StoredBody, "tableId" | "receivedAt"> | null) {
  if (after === null) return tx`true`;
  return tx`(p.table_id, p.received_at) > (${after.tableId}, ${after.receivedAt}::text::timestamptz)`;
}
