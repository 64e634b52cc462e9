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
  // the keys of a page first, each arm in the order of its primary key: a page costs as much as its rows
  return tx<StoredBody[]>`
    select
      k.table_id as "tableId",
      t.house_id || '/' || t.game || '/' || t.market as "table",
      utc_text(k.received_at) as "receivedAt",
      coalesce(kept.body, payload_body(live.body, live.body_of, live.received_at)) as body,
      encode(coalesce(kept.sha256, live.sha256), 'hex') as sha256
    from (
      (
        select p.table_id, p.received_at, false as is_kept
        from payloads p
        where (${own})
          and ${place}
        order by p.table_id, p.received_at
        limit ${limit}
      )
      union all
      (
        select p.table_id, p.received_at, true
        from payloads_kept p
        where ${tableId === undefined ? tx`true` : tx`p.table_id = ${tableId}`}
          and ${place}
          and not exists (select from payloads l where l.table_id = p.table_id and l.received_at = p.received_at)
        order by p.table_id, p.received_at
        limit ${limit}
      )
      order by table_id, received_at
      limit ${limit}
    ) k
    join tables t on t.id = k.table_id
    left join payloads live on not k.is_kept and live.table_id = k.table_id and live.received_at = k.received_at
    left join payloads_kept kept on k.is_kept and kept.table_id = k.table_id and kept.received_at = k.received_at
    order by k.table_id, k.received_at`;
}

function afterPlace(tx: Transaction, after: Pick<StoredBody, "tableId" | "receivedAt"> | null) {
  if (after === null) return tx`true`;
  return tx`(p.table_id, p.received_at) > (${after.tableId}, ${after.receivedAt}::text::timestamptz)`;
}
