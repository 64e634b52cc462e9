import { syncAlerts } from "../../alerts/store.ts";
import type { Sql } from "../../db/client.ts";
import type { Log } from "../../log.ts";
import { countOverdue } from "./overdue-store.ts";
import { findSuspense } from "./suspense-store.ts";

/**
 * Keeps an alert open while bank transfers wait for a second person for more than a day: the sender paid and cannot use
 * the money. Returns their number.
 */
export async function watchOverdueApprovals(sql: Sql, log: Log): Promise<number> {
  const { count, since } = await countOverdue(sql);
  const alerts =
    since === null
      ? []
      : [
          {
            subject: "approval",
            text: `${count === 1 ? "1 bank transfer waits" : `${count} bank transfers wait`} for a second person, since ${since.toISOString()}: look at them at /ops/bank`,
          },
        ];
  await syncAlerts(sql, log, "bank_approval", alerts);
  return count;
}

/** Keeps an alert open for each bank line whose money is in suspense: its sender paid and has no balance. */
export async function watchSuspense(sql: Sql, log: Log): Promise<number> {
  const alerts = await findSuspense(sql);
  await syncAlerts(sql, log, "suspense", alerts);
  return alerts.length;
}
