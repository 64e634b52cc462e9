import type { Sql } from "../../src/db/client.ts";
import { eventually } from "./eventually.ts";

/** Waits until so many sessions of the database wait for a lock. */
export async function lockWaits(sql: Sql, sessions: number): Promise<void> {
  await eventually(async () => {
    const waiting = await sql`
      select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    return waiting.length === sessions;
  });
}
