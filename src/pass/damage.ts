import { closeAlert, openAlert } from "../alerts/store.ts";
import type { Queryable } from "../db/client.ts";
import type { Log } from "../log.ts";
import type { Passes } from "./passes.ts";

const KIND = "table_damaged";

/** Raises an alert for each of these tables that is damaged, once. */
export async function tellDamage(
  sql: Queryable,
  log: Log,
  { damaged }: Pick<Passes, "damaged">,
  tableIds: readonly number[],
): Promise<void> {
  for (const tableId of tableIds) {
    const table = damaged.get(tableId);
    if (table === undefined || table.isTold) continue;
    const text = `${table.name} is damaged, so that nothing of it is taken in or forecast; what its house sends is kept. Run \`roundhouse table repair ${table.name} --reason …\`. Found: ${table.reason}`;
    await openAlert(sql, log, { kind: KIND, subject: table.name, text });
    table.isTold = true;
  }
}

/** Ends the alert of a table that was repaired. */
export async function endDamage(sql: Queryable, log: Log, table: string): Promise<void> {
  await closeAlert(sql, log, { kind: KIND, subject: table });
}
