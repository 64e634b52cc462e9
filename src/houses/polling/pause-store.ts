import type { Queryable } from "../../db/client.ts";
import { touchHeads } from "../../tables/heads-store.ts";

/** Stops polling a house until it is resumed; stores who did it and why. False if there is no such house. */
export async function pauseHouse(
  sql: Queryable,
  pause: { house: string; by: string; reason: string },
): Promise<boolean> {
  const rows = await sql`
    update houses
    set
      paused_at = coalesce(paused_at, clock_timestamp()),
      paused_by = ${pause.by},
      pause_reason = ${pause.reason}
    where id = ${pause.house}
    returning id`;
  await touchTables(sql, pause.house);
  return rows.length > 0;
}

/** Polls a paused house again, at its next poll. False if there is no such house. */
export async function resumeHouse(sql: Queryable, house: string): Promise<boolean> {
  const rows = await sql`
    update houses
    set
      paused_at = null,
      paused_by = null,
      pause_reason = null,
      updated_at = clock_timestamp()
    where id = ${house}
    returning id`;
  await touchTables(sql, house);
  return rows.length > 0;
}

/** The status of a house is shown with its tables, so readers of those must reload them. */
async function touchTables(sql: Queryable, house: string): Promise<void> {
  const tables = await sql<{ id: number }[]>`select id from tables where house_id = ${house}`;
  await touchHeads(
    sql,
    tables.map(({ id }) => id),
  );
}
