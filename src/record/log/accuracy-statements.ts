import { listPublished } from "../../forecasts/accuracy/published-store.ts";
import { voidsOf } from "../../forecasts/accuracy/figures/sums.ts";
import type { Sql } from "../../db/client.ts";
import { listAccuracyMarks } from "./pending-store.ts";
import type { AccuracyStatement } from "./statements.ts";

const TABLES_AT_ONCE = 200;
/** An entry has at most 65,535 bytes, a row about 170; the longest names of a model and a color give 400. */
const ROWS_PER_STATEMENT = 100;

/** A statement about the accuracy of a table. */
interface TableAccuracy {
  tableId: number;
  statement: AccuracyStatement;
}

/**
 * Statements about the accuracy of every table over all time, if none was made in this UTC hour; else none. Tables with
 * damaged accuracy are returned by name: nothing is stated about it.
 */
export async function listAccuracyStatements(
  sql: Sql,
  logId: number,
): Promise<{ statements: TableAccuracy[]; damaged: string[] }> {
  const statements: TableAccuracy[] = [];
  const damaged: string[] = [];
  for (let after = 0; ;) {
    const page = await sql.begin("isolation level repeatable read read only", async (tx) => {
      const marks = await listAccuracyMarks(tx, { logId, after, limit: TABLES_AT_ONCE });
      const published = await listPublished(tx, { tableIds: marks.map(({ tableId }) => tableId), periods: ["all"] });
      const isDamaged = new Set(published.damaged.map(({ tableId }) => tableId));
      return { marks, isDamaged, rows: Map.groupBy(published.rows, ({ tableId }) => tableId) };
    });
    for (const { tableId, ...mark } of page.marks) {
      if (page.isDamaged.has(tableId)) damaged.push(mark.table);
      const rows = (page.rows.get(tableId) ?? []).map(({ model, feature, sums }) => ({
        model,
        feature,
        forecasts: String(sums.forecasts),
        scored: String(sums.n),
        hits: String(sums.hits),
        voids: String(voidsOf(sums)),
        log_loss: String(sums.sumLl),
      }));
      if (rows.every(({ scored }) => scored === "0")) continue;
      for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT)
        statements.push({
          tableId,
          statement: { kind: "accuracy", ...mark, rows: rows.slice(from, from + ROWS_PER_STATEMENT) },
        });
    }
    const last = page.marks.at(-1);
    if (last === undefined) return { statements, damaged };
    after = last.tableId;
  }
}
