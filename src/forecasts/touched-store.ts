import type { Transaction } from "../db/client.ts";
import type { TouchedHour } from "./score-store.ts";

/** Notes hours whose sums are behind the facts by what this transaction adds. Needs the tables' accuracy locks. */
export async function noteTouched(tx: Transaction, hours: readonly TouchedHour[]): Promise<void> {
  if (hours.length === 0) return;
  const rows = hours.map(({ tableId, ...hour }) => ({ table_id: tableId, ...hour }));
  await tx`
    insert into hours_to_sum (table_id, model, feature, hour)
    select distinct table_id, model, feature, hour
    from jsonb_to_recordset(${tx.json(rows)}) as x (table_id integer, model text, feature text, hour timestamptz)
    on conflict do nothing`;
}

/**
 * Takes noted hours of tables, the oldest first and at most `limit`, which whoever takes them must sum in this transaction.
 * Needs the accuracy locks.
 */
export async function takeTouched(tx: Transaction, tableIds: readonly number[], limit: number): Promise<TouchedHour[]> {
  return tx<TouchedHour[]>`
    delete from hours_to_sum
    where (table_id, model, feature, hour) in (
      select table_id, model, feature, hour
      from hours_to_sum
      where table_id = any(${[...tableIds]}::integer[])
      order by hour, table_id
      limit ${limit}
    )
    returning table_id as "tableId", model, feature, utc_text(hour) as hour`;
}

/** The noted hours of a table. */
export async function listTouched(tx: Transaction, tableId: number): Promise<TouchedHour[]> {
  return tx<TouchedHour[]>`
    select table_id as "tableId", model, feature, utc_text(hour) as hour
    from hours_to_sum
    where table_id = ${tableId}`;
}
