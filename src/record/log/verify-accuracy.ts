import type { Transaction } from "../../db/client.ts";
import { KEY, VOID_REASONS, voidKey } from "../../forecasts/accuracy/keys.ts";
import { sumsUpTo, type TotalSums } from "../../forecasts/accuracy/recompute-store.ts";
import type { AccuracyStatement } from "./statements.ts";
import { type ContradictedStatement, findNewestAccuracy, nameFeatures } from "./verify-log-store.ts";

type Row = AccuracyStatement["rows"][number];

/**
 * Compares what is stated last about the accuracy of a table with its sums, which must be verified; null if nothing is
 * stated or all of it is right. A row counts as it was stated last, up to the newest statement.
 */
export async function findContradictedAccuracy(
  tx: Transaction,
  tableId: number,
): Promise<ContradictedStatement | null> {
  const newest = await findNewestAccuracy(tx, tableId);
  if (newest === null) return null;
  const stated = byKey(newest.rows);
  const names = await nameFeatures(tx, tableId);
  const totals = await sumsUpTo(tx, tableId, {
    setSeq: BigInt(newest.cutoff_seq),
    settledSeq: BigInt(newest.settled_seq),
    revision: BigInt(newest.revision),
  });
  const found = byKey(totals.map((total) => rowOf(total, names)).filter(({ forecasts }) => forecasts !== "0"));
  for (const key of new Set([...stated.keys(), ...found.keys()])) {
    const row = stated.get(key);
    for (const field of ["forecasts", "scored", "hits", "voids", "log_loss"] as const) {
      const [want, have] = [row?.[field] ?? "0", found.get(key)?.[field] ?? "0"];
      if (want === have) continue;
      const { logId } = newest;
      return { logId, index: row?.index ?? newest.index, part: `${field} of ${key}`, stated: want, found: have };
    }
  }
  return null;
}

function byKey<One extends Row>(rows: readonly One[]): Map<string, One> {
  return new Map(rows.map((row) => [`${row.feature} by ${row.model}`, row]));
}

function rowOf({ model, feature, sums }: TotalSums, names: ReadonlyMap<string, string>): Row {
  const at = (key: number) => sums.get(key) ?? 0n;
  const voids = VOID_REASONS.reduce((sum, _, place) => sum + at(voidKey(place + 1)), 0n);
  return {
    model,
    feature: names.get(`${model} ${feature}`) ?? String(feature),
    forecasts: String(at(KEY.forecasts)),
    scored: String(at(KEY.n)),
    hits: String(at(KEY.hits)),
    voids: String(voids),
    log_loss: String(at(KEY.sumLl)),
  };
}
