import type { Transaction } from "../../db/client.ts";
import { lockMarks, moveMarks } from "./mark-store.ts";
import { saveDays, saveHours, savePeriods } from "./row-store.ts";
import { findDifference, readAccuracy, recomputeAccuracy } from "./recompute-store.ts";
import { encodeSums } from "./sum-vector.ts";

/**
 * Compares the accuracy of a table with its recomputation and, if a row differs, replaces them all. Waits for the
 * mark's lock. The rows that it is computed from must not change meanwhile: hold the lock of the table's head.
 *
 * @param lastSeq the newest round of the table; a mark beyond it would skip rounds
 * @returns whether a row was wrong
 * @throws Error when a fact is damaged
 */
export async function rebuildAccuracy(tx: Transaction, tableId: number, lastSeq: bigint): Promise<boolean> {
  const [stored] = await lockMarks(tx, [tableId]);
  if (stored === undefined) return false;
  const mark = { ...stored, roundSeq: stored.roundSeq < lastSeq ? stored.roundSeq : lastSeq };
  const [expected, found] = [await recomputeAccuracy(tx, mark), await readAccuracy(tx, tableId)];
  if (mark.roundSeq === stored.roundSeq && findDifference(expected, found) === null) return false;
  await saveHours(tx, allRows(tableId, expected.hours, found.hours));
  await saveDays(tx, allRows(tableId, expected.days, found.days));
  await savePeriods(tx, allRows(tableId, expected.periods, found.periods));
  await moveMarks(tx, [mark]);
  return true;
}

/** The expected rows, and the others that are stored, without sums. */
function allRows<Row extends { sums: Uint8Array }>(
  tableId: number,
  expected: ReadonlyMap<string, Row>,
  found: ReadonlyMap<string, Row>,
): (Row & { tableId: number })[] {
  const others = [...found].filter(([key]) => !expected.has(key));
  return [
    ...expected.values().map((row) => ({ ...row, tableId })),
    ...others.map(([, row]) => ({ ...row, tableId, sums: encodeSums(new Map()) })),
  ];
}
