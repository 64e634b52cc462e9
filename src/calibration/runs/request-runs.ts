import type { Queryable, Transaction } from "../../db/client.ts";
import { nested } from "../../db/nested.ts";
import { UsageError } from "../../errors.ts";
import { type RequestedModel, readParameterFile } from "../../forecasts/model/parameter-file.ts";
import { K7_1 } from "../../forecasts/model/parameters.ts";
import { type ManualRequest, requestManualRun } from "../manual-request.ts";
import { findParameters, listParameterNames } from "./parameter-set-store.ts";
import { joinBatch, labelRun } from "./run-change-store.ts";

/** A table by its id and its name, house/game/market. */
export interface NamedTable {
  id: number;
  name: string;
}

/** A stored run and its table. */
export interface RequestedRun {
  run: string;
  table: string;
}

/**
 * Stores the same run for each table, in order, as one batch if there are several: all of them or none.
 *
 * @throws UsageError if a table does not have the range or the order
 */
export async function requestRuns(
  tx: Transaction,
  tables: readonly NamedTable[],
  request: Omit<ManualRequest, "tableId" | "table"> & { tags?: readonly string[] },
): Promise<RequestedRun[]> {
  const { tags = [], ...rest } = request;
  const runs: RequestedRun[] = [];
  for (const { id: tableId, name: table } of tables) {
    const run = await requestManualRun(nested(tx), { ...rest, tableId, table });
    if (tags.length > 0) await labelRun(tx, run, { note: null, tags: [...tags] });
    runs.push({ run, table });
  }
  if (runs.length > 1)
    await joinBatch(
      tx,
      runs.map(({ run }) => run),
    );
  return runs;
}

/**
 * The model with a name and what a YAML text changes in it; null changes nothing.
 *
 * @param option how errors call the input that holds the name
 * @throws UsageError if there is no such model, or it has no such parameter
 */
export async function findRequestedModel(
  sql: Queryable,
  name: string,
  { option, changes }: { option: string; changes: string | null },
): Promise<RequestedModel> {
  const parameters = await findParameters(sql, name);
  if (parameters === null) {
    const known = [K7_1.name, ...(await listParameterNames(sql))];
    throw new UsageError(`${option}: there is no model ${name}; known are ${known.join(", ")}`);
  }
  return changes === null ? { parameters, thresholds: null } : readParameterFile(changes, parameters);
}
