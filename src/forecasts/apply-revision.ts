import type { Sql } from "../db/client.ts";
import { publishHouse } from "./publish.ts";
import { scoreTable } from "./score.ts";

/**
 * Voids the forecasts that a decision on a round touches and makes their hours and what is published anew, now instead of
 * with the next sweep: the same work, which twice is once. Gives how many forecasts became void.
 */
export async function applyRevision(
  sql: Sql,
  { tableId, house }: { tableId: number; house: string },
  signal: AbortSignal,
): Promise<{ voided: number; windows: number }> {
  const { voided, windows } = await scoreTable(sql, tableId, signal);
  await publishHouse(sql, house, signal);
  return { voided, windows };
}
