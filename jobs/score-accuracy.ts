import { z } from "zod";
import { listHousesToAdd, listTablesToAdd } from "../src/forecasts/accuracy/mark-store.ts";
import { addAccuracy } from "../src/forecasts/accuracy/add-accuracy.ts";
import { syncAlertsWithin, type Wrong } from "../src/alerts/store.ts";
import { listHousesToCalibrate, requestRollingRuns } from "../src/calibration/runs/rolling-run-store.ts";
import { listHousesToSettle, listTablesToSettle, settleEnded } from "../src/pass/add.ts";
import { listHousesToRevise, listTablesToRevise, reviseScores } from "../src/pass/stores/revise-scores-store.ts";
import { job } from "../src/queue/job.ts";
import { isOwnFault } from "../src/rounds/read-response.ts";
import { reasonOf } from "../src/errors.ts";
import calibrateTable from "./calibrate-table.ts";

interface TableName {
  id: number;
  name: string;
}

function wrongOf(subject: string, problem: string, reason: string): Wrong {
  const text = `${subject}: ${problem}, since a row is damaged (${reason}); run \`roundhouse verify --table ${subject}\``;
  return { subject, text };
}

/**
 * Adds what was issued and settled to the hours, days and periods of accuracy, and requests calibrations that are due.
 * Passes settle; this settles what they left while settling was paused, and voids what corrections touched. A table with a
 * damaged row raises an alert and stops no other.
 */
export default job({
  name: "score-accuracy",
  payload: z.object({ house: z.string() }),
  key: ({ house }) => house,
  schedule: null,
  sweep: async ({ sql }) => {
    const lists = [listHousesToAdd, listHousesToRevise, listHousesToSettle, listHousesToCalibrate];
    const houses = new Set<string>();
    for (const list of lists) for (const { house } of await list(sql)) houses.add(house);
    return [...houses].map((house) => ({ house }));
  },
  // with 10,000 tables four were always busy (33 runs per second) while polls were late; two leave them the processor
  concurrency: 2,
  timeoutMs: 60_000,
  retry: { attempts: 5, firstMs: 1000, maxMs: 60_000 },

  async run({ house }, { sql, log, signal, enqueue, published }) {
    const wrong: Wrong[] = [];
    /** Sums what a step returns for each table; a table whose rows it cannot process is named, and stops no other. */
    const sumOf = async (tables: readonly TableName[], problem: string, step: (id: number) => Promise<number>) => {
      let sum = 0;
      for (const { id, name } of tables) {
        signal.throwIfAborted();
        try {
          sum += await step(id);
        } catch (error) {
          if (!isOwnFault(error)) throw error;
          wrong.push(wrongOf(name, problem, reasonOf(error)));
        }
      }
      return sum;
    };
    const ended = await listTablesToSettle(sql, house);
    const settled = await sumOf(ended, "forecasts that ended are not settled", (id) => settleEnded(sql, id));
    const corrected = await listTablesToRevise(sql, house);
    const voided = await sumOf(corrected, "scores of corrected rounds are not revised", (id) =>
      sql.begin(async (tx) => (await reviseScores(tx, id)).voided),
    );
    const tables = await listTablesToAdd(sql, house);
    const ids = tables.map(({ id }) => id);
    const { damaged, voids, ...added } = await addAccuracy(sql, ids, signal);
    if (ids.length > 0) published(ids);
    for (const { tableId, reason } of damaged) {
      const name = tables.find(({ id }) => id === tableId)?.name ?? String(tableId);
      wrong.push(wrongOf(name, "its accuracy stands still", reason));
    }
    const seen = ended.length + corrected.length + ids.length;
    if (seen > 0) await syncAlertsWithin(sql, log, { kind: "scoring", within: `${house}/` }, wrong);
    const runs = await requestRollingRuns(sql, house);
    for (const run of runs) await enqueue(calibrateTable, run);
    const changes = Object.entries({ settled, voided, damaged: wrong.length }).filter(([, count]) => count > 0);
    // named `void_…` for the metric of voids by reason
    const byReason = [...voids].map(([reason, count]) => [`void_${reason}`, count] as const);
    return { ...added, calibrations: runs.length, ...Object.fromEntries([...changes, ...byReason]) };
  },
});
