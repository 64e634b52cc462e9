import type { Queryable } from "../../db/client.ts";
import { UsageError } from "../../errors.ts";
import { findTablesOf } from "../../rounds/lists/table-filter-store.ts";
import { findTableByName } from "../table-name.ts";

/** The tables of a command, by house or by name. */
export interface Chosen {
  house?: string;
  table?: string;
}

/**
 * The ids of the tables of a house, or of one table; null if neither is given.
 * @throws UsageError if the house or table does not exist.
 */
export async function chosenTables(sql: Queryable, { house, table }: Chosen): Promise<number[] | null> {
  if (table !== undefined) {
    const found = await findTableByName(sql, table);
    if (house === undefined || found.name.startsWith(`${house}/`)) return [found.id];
    throw new UsageError(`${table} is not a table of ${house}; give one of the two`);
  }
  if (house === undefined) return null;
  const found = house.includes("/") ? null : await findTablesOf(sql, house);
  if (found === null)
    throw new UsageError(`there is no house ${JSON.stringify(house)} with tables; see \`roundhouse house list\``);
  return found.ids;
}
