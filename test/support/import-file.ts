import { tmpdir } from "node:os";
import type { Sql } from "../../src/db/client.ts";
import { createProver } from "../../src/houses/fairness/prove.ts";
import { settingsOf } from "../../src/houses/house.ts";
import { loadHouse } from "../../src/houses/store.ts";
import { importRounds, type Imported, type ImportOptions } from "../../src/import/import.ts";
import { createPlanner, type PlanOptions } from "../../src/import/plan.ts";
import type { FileRow } from "../../src/import/row.ts";
import { openStagedRounds } from "../../src/import/staged-rounds.ts";
import type { MadeTable } from "./make.ts";

/** What an import of a test may change. */
export type ChangedImport = Partial<Omit<PlanOptions & ImportOptions, "settings">>;

/** A row of a file: round_id, multiplier, occurred_at, hash. */
export type Row = [string | null, string | null, (string | null)?, (string | null)?];

/** Imports rows as lines 2, 3 … of a file, on a day on which their times are past. */
export async function importFile(
  sql: Sql,
  table: MadeTable,
  rows: readonly Row[],
  changed: ChangedImport = {},
): Promise<Imported> {
  const house = await loadHouse(sql, () => undefined, table.house);
  const [, game = "", market = ""] = table.name.split("/");
  const settings = house === null ? null : settingsOf(house, { game, market });
  if (settings === null) throw new Error("the table has no settings");
  const options = {
    settings,
    now: Date.parse("2026-11-21T04:00:00Z"),
    prover: createProver(),
    dryRun: false,
    signal: new AbortController().signal,
    ...changed,
  };
  const staged = await openStagedRounds(tmpdir());
  try {
    const planner = createPlanner(options, staged);
    for (const [place, [roundId, multiplier, occurredAt = null, hash = null]] of rows.entries()) {
      const row: FileRow = { line: place + 2, roundId, multiplier, occurredAt, hash };
      planner.add(row);
    }
    return await importRounds(sql, table.id, await planner.plan(rows.length, options.signal), options);
  } finally {
    staged.close();
  }
}
