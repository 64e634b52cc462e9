import type { Sql } from "../../src/db/client.ts";
import { eventually } from "./eventually.ts";

/** Waits until so many sessions of the database wait for a lock; autovacuum may wait too. */
export async function lockWaits(sql: Sql, sessions: number): Promise<void> {
  await eventually(async () => {
    const waiting = await sql`
      select
      from pg_stat_activity
      where datname = current_database()
        and backend_type = 'client backend'
        and wait_event_type = 'Lock'`;
    return waiting.length === sessions;
  });
}
