import type { Transaction } from "../db/client.ts";
import { lockHeads } from "../tables/heads-store.ts";
import { refreshNoticesWithin } from "../rounds/notices/notices-store.ts";
import { findNumbers, saveReset } from "./reset-newest-store.ts";
import type { Decision } from "./revision.ts";

/** The newest number of a table before and after a reset, or why it was refused. */
export type ResetOutcome = { ok: true; table: string; before: bigint; after: bigint } | { ok: false; problem: string };

/**
 * Sets the newest number of a table back after a wrong number was accepted, which made every real round since then
 * late. Later rounds are on time again, gaps above the number are given up, and one across it ends there. Stored rounds
 * stay, and `verify` accounts for the reset. Waits for the table's lock.
 *
 * @param to the number of the newest real round; null: the highest one that arrived late since the newest on-time round
 */
export async function resetNewestNumber(
  tx: Transaction,
  tableId: number,
  { to, by, reason }: Decision & { to: bigint | null },
): Promise<ResetOutcome> {
  const [table] = await lockHeads(tx, [tableId]);
  if (table === undefined) return { ok: false, problem: "the table has no rounds yet" };
  const { newest, highestLate } = await findNumbers(tx, tableId);
  if (newest === null) return { ok: false, problem: `the round ids of ${table.name} are not consecutive numbers` };
  const after = to ?? highestLate;
  if (after === null) {
    return {
      ok: false,
      problem: `no round of ${table.name} was late since ${newest}: state the newest number`,
    };
  }
  if (after >= newest) {
    return { ok: false, problem: `expected a number below the newest known, ${newest}, found ${after}` };
  }
  await saveReset(tx, tableId, { newest, after, by, reason });
  await refreshNoticesWithin(tx, [tableId]);
  return { ok: true, table: table.name, before: newest, after };
}

/** The audit entry of a reset. */
export function resetAuditEntry({ table, before, after }: Extract<ResetOutcome, { ok: true }>, reason: string) {
  const [from, to] = [before, after].map((number) => ({ newest_number: String(number) }));
  return { action: "table.reset-newest", target: `table ${table}`, before: from, after: to, reason };
}
