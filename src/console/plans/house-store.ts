import type { Queryable } from "../../db/client.ts";

/** The houses that are in force, by their names: those that a plan with all houses has now. */
export async function listHousesNow(sql: Queryable): Promise<{ id: string; name: string }[]> {
  return sql<{ id: string; name: string }[]>`
    select id, name
    from houses
    where enabled
    order by lower(name)`;
}
