import type { Query } from "../../db/query.ts";
import type { CompletePassRows as PassRows } from "../compute/state.ts";
import { plainArray } from "./arrays.ts";

/** A statement of a transaction, to be run with the others of it. */
export type Statement = Query<readonly unknown[]>;

/** Rows of one kind, each with its table. */
export interface TableRows<Row> {
  tables: readonly number[];
  /** The same as the text of an array. */
  tableIds: string;
  rows: readonly Row[];
}

/** Rows of passes, in their order. */
export function rowsOf<Row, Pass extends Pick<PassRows, "tableId"> = PassRows>(
  passes: readonly Pass[],
  of: (pass: Pass) => readonly Row[],
): TableRows<Row> {
  const tableIds: number[] = [];
  const rows: Row[] = [];
  for (const pass of passes) {
    for (const row of of(pass)) {
      tableIds.push(pass.tableId);
      rows.push(row);
    }
  }
  return { tables: tableIds, tableIds: plainArray(tableIds), rows };
}
