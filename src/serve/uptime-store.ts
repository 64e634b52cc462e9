import type { Queryable } from "../db/client.ts";

/** Notes that an API process works in this minute. */
export async function noteApiUptime(sql: Queryable): Promise<void> {
  await sql`
    insert into uptime_minutes (component, minute)
    values ('api', date_trunc('minute', clock_timestamp()))
    on conflict do nothing`;
}
