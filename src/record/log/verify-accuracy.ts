import type { Transaction } from "../../db/client.ts";
import { KEY, VOID_REASONS, voidKey } from "../../forecasts/accuracy/keys.ts";
import { sumsUpTo, type TotalSums } from "../../forecasts/accuracy/recompute-store.ts";
import type { AccuracyStatement } from "./statements.ts";
import {
  type AccuracyPlaces,
  type ContradictedStatement,
  findAccuracyPlaces,
  nameFeatures,
  readAccuracyStatements,
} from "./verify-log-store.ts";

type Row = AccuracyStatement["rows"][number];

/** Statements parsed together: those of two days, if each has all changed rows. */
const STATEMENTS_AT_ONCE = 50;

/**
 * Compares what is stated last about the accuracy of a table with its sums, which must be verified; null if nothing is
 * stated or all of it is right. A row counts as it was stated last, up to the newest statement.
 */
export async function findContradictedAccuracy(
  tx: Transaction,
  tableId: number,
): Promise<ContradictedStatement | null> {
  const places = await findAccuracyPlaces(tx, tableId);
  if (places === null) return null;
  const { logId, indexes } = places;
  const [newest] = await readAccuracyStatements(tx, { logId, indexes: indexes.slice(0, 1) });
  if (newest === undefined) return null;
  const names = await nameFeatures(tx, tableId);
  const totals = await sumsUpTo(tx, tableId, {
    setSeq: BigInt(newest.cutoff_seq),
    settledSeq: BigInt(newest.settled_seq),
    revision: BigInt(newest.revision),
  });
  const rows = totals.map((total) => rowOf(total, names)).filter(({ forecasts }) => forecasts !== "0");
  const found = new Map(rows.map((row) => [keyOf(row), row]));
  const stated = await listStatedRows(tx, places, new Set(found.keys()));
  for (const key of new Set([...stated.keys(), ...found.keys()])) {
    const row = stated.get(key);
    for (const field of ["forecasts", "scored", "hits", "voids", "log_loss"] as const) {
      const [want, have] = [row?.[field] ?? "0", found.get(key)?.[field] ?? "0"];
      if (want === have) continue;
      return { logId, index: row?.index ?? newest.index, part: `${field} of ${key}`, stated: want, found: have };
    }
  }
  return null;
}

/**
 * Each row as it was stated last, with its place. The log has all rows of each day, and a table of ten years 87,600
 * statements: older ones than those that have all rows with forecasts are not parsed.
 */
async function listStatedRows(
  tx: Transaction,
  { logId, indexes }: AccuracyPlaces,
  keys: ReadonlySet<string>,
): Promise<Map<string, Row & { index: number }>> {
  const stated = new Map<string, Row & { index: number }>();
  const missing = new Set(keys);
  for (let from = 0; from === 0 || (missing.size > 0 && from < indexes.length); from += STATEMENTS_AT_ONCE) {
    const page = { logId, indexes: indexes.slice(from, from + STATEMENTS_AT_ONCE) };
    for (const { index, rows } of await readAccuracyStatements(tx, page)) {
      for (const row of rows) {
        const key = keyOf(row);
        if (!stated.has(key)) stated.set(key, { ...row, index });
        missing.delete(key);
      }
    }
  }
  return stated;
}

function keyOf({ feature, model }: Row): string {
  return `${feature} by ${model}`;
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
