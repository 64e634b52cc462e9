import type { Transaction } from "../../db/client.ts";
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
 * Takes noted hours of tables, at most `limit`: of each table its oldest, then of each its next. Whoever takes them must sum
 * them in this transaction. Tables of which some are left are `left`. Needs the accuracy locks.
 */
export async function takeTouched(
  tx: Transaction,
  tableIds: readonly number[],
  limit: number,
): Promise<{ hours: TouchedHour[]; left: ReadonlySet<number> }> {
  const hours = await tx<TouchedHour[]>`
    delete from hours_to_sum
    where (table_id, model, feature, hour) in (
      select table_id, model, feature, hour
      from hours_to_sum
      where table_id = any(${[...tableIds]}::integer[])
      order by row_number() over (partition by table_id order by hour), table_id
      limit ${limit}
    )
    returning table_id as "tableId", model, feature, utc_text(hour) as hour`;
  if (hours.length < limit) return { hours, left: new Set() };
  const rows = await tx<{ id: number }[]>`
    select distinct table_id as id
    from hours_to_sum
    where table_id = any(${[...tableIds]}::integer[])`;
  return { hours, left: new Set(rows.map(({ id }) => id)) };
}

/** The noted hours of a table. */
export async function listTouched(tx: Transaction, tableId: number): Promise<TouchedHour[]> {
  return tx<TouchedHour[]>`
    select table_id as "tableId", model, feature, utc_text(hour) as hour
    from hours_to_sum
    where table_id = ${tableId}`;
}
