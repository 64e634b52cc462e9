import type { Sql } from "../../db/client.ts";
import { publishTable } from "../accuracy/publish.ts";
import { scoreTable } from "./score.ts";

/**
 * Voids the forecasts that a decision on a round touches and makes their hours anew, now instead of with the next sweep,
 * and what is published of them unless it was a moment ago: the same work, which twice is once. Gives how many forecasts
 * became void.
 * @throws the error of a damaged row of the table
 */
export async function applyRevision(
  sql: Sql,
  tableId: number,
  signal: AbortSignal,
): Promise<{ voided: number; windows: number }> {
  const { voided, windows } = await scoreTable(sql, tableId, signal);
  await publishTable(sql, tableId, signal);
  return { voided, windows };
}
