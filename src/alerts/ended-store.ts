import type { Sql } from "../db/client.ts";
import type { Log } from "../log.ts";
import { type AlertOf, closeAlert } from "./store.ts";

/**
 * Closes alerts that whatever opened them does not close any more: those of `unusedKinds`, whose service is not configured,
 * and those about calibrations and payloads that are compared no longer, because their table or house is disabled.
 */
export async function closeEndedAlerts(sql: Sql, log: Log, unusedKinds: readonly string[]): Promise<void> {
  const ended = await sql<AlertOf[]>`
    select a.kind, a.subject
    from alerts a
    where a.closed_at is null
      and (
        a.kind = any(${unusedKinds}::text[])
        or a.kind in ('calibration', 'calibration_failed', 'payload_differs')
          and not exists (
            select
            from tables t
            join houses h on h.id = t.house_id
            where h.enabled
              and (t.enabled or a.kind = 'payload_differs')
              and t.house_id || '/' || t.game || '/' || t.market = split_part(a.subject, ' ', 1)
          )
      )
    order by a.opened_at, a.kind, a.subject`;
  for (const alert of ended) await closeAlert(sql, log, alert);
}
