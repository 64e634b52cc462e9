import { syncAlerts } from "../../alerts/store.ts";
import type { Sql } from "../../db/client.ts";
import type { Log } from "../../log.ts";

/**
 * Keeps one alert open per table with a failed proof, and closes the others. For the leader alone: a process with an older
 * list would close what another has just opened.
 */
export async function syncProofAlerts(sql: Sql, log: Log): Promise<void> {
  const failed = await sql<{ subject: string; text: string }[]>`
    select
      t.house_id || '/' || t.game || '/' || t.market as subject,
      t.house_id || '/' || t.game || '/' || t.market || ': ' || n.text as text
    from notices n
    join tables t on t.id = n.table_id
    where n.kind = 'proof'
      and n.closed_at is null
    order by subject`;
  await syncAlerts(sql, log, "proof mismatch", failed);
}
