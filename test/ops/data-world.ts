import { addAccuracy } from "../../src/forecasts/accuracy/add-accuracy.ts";
import { runRollingCalibration } from "../../src/calibration/calibrate.ts";
import compareCalibrations from "../../jobs/compare-calibrations.ts";
import replayRange from "../../jobs/replay-range.ts";
import type { Sql } from "../../src/db/client.ts";
import { PAUSE_MS, playRounds } from "../forecasts/world.ts";
import { generatedRounds } from "../forecasts/streams.ts";
import { testContext } from "../support/context.ts";
import { makeTable, type MadeTable } from "../support/make.ts";

/** The id of the first round of the table. */
export const FIRST_ID = 10_000;
const signal = new AbortController().signal;

/** A table whose live model has learned so many rounds, with a record that proves it. */
export async function makeLearnedTable(sql: Sql, count: number): Promise<MadeTable> {
  const table = await makeTable(sql, { house_edge: 0.01, pause_ms: PAUSE_MS });
  const rounds = generatedRounds(count).map(({ hundredths }, i) => ({ hundredths, roundId: String(FIRST_ID + i) }));
  await playRounds(sql, table.id, rounds);
  await calibrateRolling(sql, table.id);
  return table;
}

/** The rolling record up to the live state; gives its id. */
export async function calibrateRolling(sql: Sql, tableId: number): Promise<string> {
  const [asked] = await sql<{ run: string }[]>`
    insert into calibration_runs (table_id, kind, model)
    select table_id, 'rolling', model from table_heads where table_id = ${tableId}
    returning id::text as run`;
  await runRollingCalibration(sql, asked?.run ?? "", signal);
  const [made] = await sql<{ id: string }[]>`
    select max(id)::text as id from calibrations where table_id = ${tableId}`;
  return made?.id ?? "";
}

/** Rounds one after another, each with forecasts that are issued before it and settled by it; then all is summed. */
export async function playTurns(sql: Sql, { id }: MadeTable, multipliers: readonly number[]): Promise<void> {
  await playRounds(sql, id, multipliers, { atOnce: 1 });
  await addAccuracy(sql, [id], signal);
}

/** What a worker does of what persons have asked for, until nothing waits. */
export async function work(sql: Sql): Promise<void> {
  const { context } = testContext(sql);
  for (const run of (await replayRange.sweep?.(context)) ?? []) await replayRange.run(run, context);
  for (const pair of (await compareCalibrations.sweep?.(context)) ?? []) await compareCalibrations.run(pair, context);
}
