import { syncAlerts } from "../../alerts/store.ts";
import type { Sql } from "../../db/client.ts";
import type { Log } from "../../log.ts";
import { findOverdue } from "./overdue-store.ts";
import { findSuspense } from "./suspense-store.ts";

/**
 * Keeps an alert open for each bank line that needs a second person for more than a day: the sender paid and cannot use
 * the money. Returns their number.
 */
export async function watchOverdueApprovals(sql: Sql, log: Log): Promise<number> {
  const alerts = await findOverdue(sql);
  await syncAlerts(sql, log, "bank_approval", alerts);
  return alerts.length;
}

/** Keeps an alert open for each bank line whose money is in suspense: its sender paid and has no balance. */
export async function watchSuspense(sql: Sql, log: Log): Promise<number> {
  const alerts = await findSuspense(sql);
  await syncAlerts(sql, log, "suspense", alerts);
  return alerts.length;
}
