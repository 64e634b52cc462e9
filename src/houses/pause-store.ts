import type { Queryable } from "../db/client.ts";

/** Stops polling a house until it is resumed; who did it and why is kept. False where there is no such house. */
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
  await touchPublished(sql, pause.house);
  return rows.length > 0;
}

/** Polls a paused house again, at its next turn. False where there is no such house. */
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
  await touchPublished(sql, house);
  return rows.length > 0;
}

/** The status of a table is shown with what is published of it: whoever reads that must look again. */
async function touchPublished(sql: Queryable, house: string): Promise<void> {
  await sql`
    update published_now p
    set updated_at = clock_timestamp()
    from tables t
    where t.id = p.table_id
      and t.house_id = ${house}`;
}
