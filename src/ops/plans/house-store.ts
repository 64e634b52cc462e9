import type { Queryable } from "../../db/client.ts";

/** All houses, by their ids. */
export async function listHouseIds(sql: Queryable): Promise<{ id: string; name: string; enabled: boolean }[]> {
  return sql<{ id: string; name: string; enabled: boolean }[]>`
    select id, name, enabled
    from houses
    order by id`;
}
