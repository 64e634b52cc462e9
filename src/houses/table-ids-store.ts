import type { Queryable } from "../db/client.ts";

/** Those of houses that have a table with this id or a higher one. */
export async function listHousesFrom(
  sql: Queryable,
  houses: readonly { house: string }[],
  tableId: number,
): Promise<ReadonlySet<string>> {
  const rows = await sql<{ house: string }[]>`
    select distinct house_id as house
    from tables
    where house_id = any(${houses.map(({ house }) => house)}::text[])
      and id >= ${tableId}`;
  return new Set(rows.map(({ house }) => house));
}
