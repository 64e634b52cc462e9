import type { Sql } from "../../db/client.ts";
import { UsageError } from "../../errors.ts";
import type { Period } from "../../forecasts/accuracy/periods.ts";
import { measure as measureAll, type Measured } from "../../forecasts/accuracy/measure.ts";
import { listHouseIds } from "../../forecasts/accuracy/measured-store.ts";
import { findTableByName } from "../table-name.ts";

/** The scope: one table, one house or all tables. */
export interface Asked {
  table?: string;
  house?: string;
  feature?: string;
  period: Period;
}

/**
 * Computes what is published over a period, for each table or, for a house, its tables together, with all derived figures.
 * @throws UsageError if the table or house does not exist
 */
export async function measure(sql: Sql, { table, house, ...rest }: Asked): Promise<Measured[]> {
  const tableId = table === undefined ? undefined : (await findTableByName(sql, table)).id;
  if (house !== undefined) await requireHouse(sql, house);
  return measureAll(sql, { ...rest, tableId, house });
}

async function requireHouse(sql: Sql, house: string): Promise<void> {
  const houses = await listHouseIds(sql);
  if (houses.includes(house)) return;
  const known = houses.length === 0 ? "there are none yet" : `there are ${houses.slice(0, 20).join(", ")}`;
  throw new UsageError(`there is no house ${JSON.stringify(house)}; ${known} (\`roundhouse house list\`)`);
}
