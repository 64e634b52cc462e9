import { syncAlerts } from "../../alerts/store.ts";
import type { Sql } from "../../db/client.ts";
import type { Log } from "../../log.ts";
import { countOverdue } from "./overdue-store.ts";

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
