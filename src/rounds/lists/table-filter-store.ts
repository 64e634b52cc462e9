import type { Queryable } from "../../db/client.ts";

/** The tables that a list is limited to, and whether the name is that of a house. */
export interface TableChoice {
  ids: number[];
  house: string;
}

/** Returns the tables of a house (`bustabit`), or one table (`bustabit/crash/global`); null if neither exists. */
export async function findTablesOf(sql: Queryable, name: string): Promise<TableChoice | null> {
  const [house = "", game = null, market = null, ...rest] = name.split("/");
  if (rest.length > 0 || (game === null) !== (market === null)) return null;
  const rows = await sql<{ id: number }[]>`
    select id
    from tables
    where house_id = ${house}
      and (${game}::text is null or game = ${game})
      and (${market}::text is null or market = ${market})
    order by id`;
  return rows.length === 0 ? null : { ids: rows.map(({ id }) => id), house };
}
