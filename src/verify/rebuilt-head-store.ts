import type { Transaction } from "../db/client.ts";
import { REBUILT_HEADS, type RebuiltHeadRow } from "../pass/compute/rows.ts";
import { rowsOf } from "../pass/stores/table-rows.ts";

/**
 * Writes the values that follow from a table's records into its head, and advances its version. The caller holds its
 * lock.
 */
export async function saveRebuiltHead(tx: Transaction, tableId: number, head: RebuiltHeadRow): Promise<void> {
  await tx`
    update table_heads h
    set
      version = h.version + 1, changed_at = clock_timestamp(), part_sha256 = null, ${REBUILT_HEADS.assignFrom("n")}
    from (${REBUILT_HEADS.rows(rowsOf([{ tableId }], () => [head]))}) n
    where h.table_id = n.table_id`;
}
