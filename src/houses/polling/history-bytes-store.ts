import type { Sql } from "../../db/client.ts";

/**
 * Counts the bytes of a page of history that is to be stored for a table. On its own: a transaction that holds the head
 * must not wait for a lease.
 */
export async function countHistoryBytes(sql: Sql, tableId: number, bytes: number): Promise<void> {
  await sql`
    update poll_leases l
    set
      bytes_on = day.today,
      bytes_today = ${bytes} + case when l.bytes_on = day.today then l.bytes_today else 0 end
    from tables t
    cross join (select (clock_timestamp() at time zone 'UTC')::date as today) day
    where t.id = ${tableId}
      and l.house_id = t.house_id
      and l.shard = t.shard`;
}
