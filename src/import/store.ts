import type { Sql } from "../db/client.ts";

/** Whether a table has rounds that are not from an import. */
export async function hasHouseRounds(sql: Sql, tableId: number): Promise<boolean> {
  const [found] = await sql`
    select 1 as one
    from rounds
    where table_id = ${tableId}
      and source <> 3
    limit 1`;
  return found !== undefined;
}

/** The newest number of a table; null if it has no rounds, or its ids are no numbers. */
export async function findNewestNumber(sql: Sql, tableId: number): Promise<bigint | null> {
  const [head] = await sql<{ newest: bigint | null }[]>`
    select newest_number as newest
    from table_heads
    where table_id = ${tableId}`;
  return head?.newest ?? null;
}
