import { closeAlert, openAlert } from "../alerts/store.ts";
import type { Queryable } from "../db/client.ts";
import type { Log } from "../log.ts";
import type { Passes } from "./passes.ts";

const KIND = "table_damaged";

/** Raises an alert for each of these tables that is damaged, once. */
export async function raiseDamageAlerts(
  sql: Queryable,
  log: Log,
  { damaged }: Pick<Passes, "damaged">,
  tableIds: readonly number[],
): Promise<void> {
  for (const tableId of tableIds) {
    const table = damaged.get(tableId);
    if (table === undefined || table.isAlerted) continue;
    const text = `${table.name} is damaged, so its rounds are not processed and nothing is forecast; its payloads are stored. Run \`roundhouse table repair ${table.name} --reason …\`. Found: ${table.reason}`;
    await openAlert(sql, log, { kind: KIND, subject: table.name, text });
    table.isAlerted = true;
  }
}

/** Closes the alert of a repaired table. */
export async function closeDamageAlert(sql: Queryable, log: Log, table: string): Promise<void> {
  await closeAlert(sql, log, { kind: KIND, subject: table });
}
