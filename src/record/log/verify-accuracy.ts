import type { Transaction } from "../../db/client.ts";
import { KEY, VOID_REASONS, voidKey } from "../../forecasts/accuracy/keys.ts";
import { sumsUpTo, type TotalSums } from "../../forecasts/accuracy/recompute-store.ts";
import type { AccuracyStatement } from "./statements.ts";
import { type ContradictedStatement, listNewestAccuracy, nameFeatures } from "./verify-log-store.ts";

type Row = AccuracyStatement["rows"][number];

/**
 * Compares the newest statement about the accuracy of a table with its sums, which must be verified; null if it has none
 * or all of it is right.
 */
export async function findContradictedAccuracy(
  tx: Transaction,
  tableId: number,
): Promise<ContradictedStatement | null> {
  const [newest, ...others] = await listNewestAccuracy(tx, tableId);
  if (newest === undefined) return null;
  const { statement, index, logId } = newest;
  const parts = [newest, ...others].filter(({ statement: one }) => coverage(one) === coverage(statement));
  const stated = byKey(parts.flatMap(({ statement: { rows } }) => rows));
  const names = await nameFeatures(tx, tableId);
  const totals = await sumsUpTo(tx, tableId, {
    setSeq: BigInt(statement.cutoff_seq),
    settledSeq: BigInt(statement.settled_seq),
    revision: BigInt(statement.revision),
  });
  const found = byKey(totals.map((total) => rowOf(total, names)).filter(({ forecasts }) => forecasts !== "0"));
  for (const key of new Set([...stated.keys(), ...found.keys()])) {
    for (const field of ["forecasts", "scored", "hits", "voids", "log_loss"] as const) {
      const [want, have] = [stated.get(key)?.[field] ?? "0", found.get(key)?.[field] ?? "0"];
      if (want !== have) return { logId, index, part: `${field} of ${key}`, stated: want, found: have };
    }
  }
  return null;
}

function coverage({ cutoff_seq, settled_seq, revision }: AccuracyStatement): string {
  return [cutoff_seq, settled_seq, revision].join(" ");
}

function byKey(rows: readonly Row[]): Map<string, Row> {
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
