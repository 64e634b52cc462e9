import type { Queryable } from "../../db/client.ts";

/** The enabled houses, by name: what a plan with all houses includes now. */
export async function listHousesNow(sql: Queryable): Promise<{ id: string; name: string }[]> {
  return sql<{ id: string; name: string }[]>`
    select id, name
    from houses
    where enabled
    order by lower(name)`;
}
