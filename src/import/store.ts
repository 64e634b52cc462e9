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
