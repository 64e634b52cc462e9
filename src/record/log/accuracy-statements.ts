import { listPublished, type PublishedAccuracy } from "../../forecasts/accuracy/published-store.ts";
import { voidsOf } from "../../forecasts/accuracy/figures/sums.ts";
import type { Sql } from "../../db/client.ts";
import { listAccuracyMarks, type StatedAccuracy } from "./pending-store.ts";
import type { AccuracyStatement } from "./statements.ts";

const TABLES_AT_ONCE = 200;
/** An entry has at most 65,535 bytes, a row about 170; the longest names of a model and a color give 400. */
const ROWS_PER_STATEMENT = 100;

/** A statement about the accuracy of a table. */
interface TableAccuracy {
  tableId: number;
  statement: AccuracyStatement;
}

/** Statements about accuracy, and up to which version the tables are stated with them. */
interface AccuracyStatements {
  statements: TableAccuracy[];
  stated: StatedAccuracy[];
  /** Tables with damaged accuracy, by name: nothing is stated about it. */
  damaged: string[];
}

/**
 * Statements about the accuracy of every table over all time, of the rows that changed since they were stated; none if some
 * were made in this UTC hour. The first ones of a table in a UTC day have all rows, since a row can also change without a new
 * version: by a fault, or by someone with access to the database.
 */
export async function listAccuracyStatements(sql: Sql, logId: number): Promise<AccuracyStatements> {
  const found: AccuracyStatements = { statements: [], stated: [], damaged: [] };
  for (let after = 0; ;) {
    const page = await sql.begin("isolation level repeatable read read only", async (tx) => {
      const marks = await listAccuracyMarks(tx, { logId, after, limit: TABLES_AT_ONCE });
      const published = await listPublished(tx, { tableIds: marks.map(({ tableId }) => tableId), periods: ["all"] });
      const isDamaged = new Set(published.damaged.map(({ tableId }) => tableId));
      return { marks, isDamaged, rows: Map.groupBy(published.rows, ({ tableId }) => tableId) };
    });
    for (const { tableId, version, statedVersion, isWholeDue, ...mark } of page.marks) {
      if (page.isDamaged.has(tableId)) {
        found.damaged.push(mark.table);
        continue;
      }
      // versions of a restored table may be lower than the stated one
      const isWhole = isWholeDue || statedVersion === null || statedVersion > version;
      const changed = (page.rows.get(tableId) ?? []).filter((row) => isWhole || row.version > statedVersion);
      const rows = changed.map(rowOf);
      // before the first score of a table nothing is stated about it
      if (statedVersion === null && rows.every(({ scored }) => scored === "0")) continue;
      found.stated.push({ tableId, version, isWhole });
      for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT)
        found.statements.push({
          tableId,
          statement: { kind: "accuracy", ...mark, rows: rows.slice(from, from + ROWS_PER_STATEMENT) },
        });
    }
    const last = page.marks.at(-1);
    if (last === undefined) return found;
    after = last.tableId;
  }
}

function rowOf({ model, feature, sums }: PublishedAccuracy): AccuracyStatement["rows"][number] {
  return {
    model,
    feature,
    forecasts: String(sums.forecasts),
    scored: String(sums.n),
    hits: String(sums.hits),
    voids: String(voidsOf(sums)),
    log_loss: String(sums.sumLl),
  };
}
