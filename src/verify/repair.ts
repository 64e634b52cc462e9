import type { Decided } from "../audit/decision.ts";
import type { Transaction } from "../db/client.ts";
import { reasonOf } from "../errors.ts";
import { rebuildAccuracy } from "../forecasts/accuracy/rebuild-accuracy.ts";
import { listTablesToVerify } from "./verified-table-store.ts";
import { rebuildTable } from "./walk.ts";
import { lockHeads } from "../tables/heads-store.ts";
import { saveRebuiltHead } from "./rebuilt-head-store.ts";
import { saveSnapshot } from "../pass/stores/write-forecasts-store.ts";

/**
 * Rebuilds the snapshot, the head and, if they are wrong, the sums of accuracy of a table from its rounds, forecasts and
 * scores, which stay unchanged. Waits for the table's lock and keeps it until the end of the transaction.
 *
 * @param progress called with the rounds and forecasts read so far, and their total
 */
export async function repairTable(
  tx: Transaction,
  tableId: number,
  progress: (done: number, total: number) => void = () => undefined,
): Promise<Decided<{ rounds: bigint; forecasts: bigint; isAccuracyRebuilt: boolean }>> {
  const [locked] = await lockHeads(tx, [tableId]);
  const [table] = await listTablesToVerify(tx, tableId);
  if (locked === undefined) return { ok: false, problem: "the table has no rounds yet" };
  if (table === undefined)
    return { ok: false, problem: "the palette of the table's head is not stored; restore it from a backup" };
  const total = Number(table.lastSeq + table.forecastSeq);
  let rebuilt: Awaited<ReturnType<typeof rebuildTable>>;
  try {
    rebuilt = await rebuildTable(tx, table, (done) => progress(done, total));
  } catch (error) {
    return {
      ok: false,
      problem: `a record of ${table.name} cannot be read: ${reasonOf(error)}; restore it from a backup`,
    };
  }
  if ("kind" in rebuilt) {
    const { kind, id, expected, found } = rebuilt;
    const problem = `${kind} ${id} is damaged: expected ${expected}, found ${found}; restore it from a backup`;
    return { ok: false, problem };
  }
  if (rebuilt.snapshot !== null) await saveSnapshot(tx, tableId, rebuilt.snapshot);
  await saveRebuiltHead(tx, tableId, rebuilt.head);
  const { lastSeq: rounds, forecastSeq: forecasts } = rebuilt.head;
  const isAccuracyRebuilt = await rebuildAccuracy(tx, tableId, rounds);
  const message = `${table.name} is rebuilt from ${rounds} rounds and ${forecasts} forecasts`;
  return { ok: true, target: `table ${table.name}`, message, rounds, forecasts, isAccuracyRebuilt };
}
