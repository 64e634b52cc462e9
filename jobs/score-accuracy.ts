import { z } from "zod";
import { listHousesToAdd, listTablesToAdd } from "../src/forecasts/accuracy/mark-store.ts";
import { addAccuracy } from "../src/forecasts/accuracy/add-accuracy.ts";
import { syncAlertsWithin } from "../src/alerts/store.ts";
import { listHousesToCalibrate, requestRollingRuns } from "../src/calibration/runs/rolling-run-store.ts";
import { listHousesToSettle, listTablesToSettle, settleEnded } from "../src/pass/add.ts";
import { listHousesToRevise, listTablesToRevise, reviseScores } from "../src/pass/stores/revise-scores-store.ts";
import { job } from "../src/queue/job.ts";
import calibrateTable from "./calibrate-table.ts";

/**
 * Adds what was issued and settled to the hours, days and periods of accuracy, and requests calibrations that are due.
 * Passes settle; this settles what they left while settling was paused, and voids what corrections touched. A table with a
 * damaged row raises an alert and keeps no other from being added.
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
    let settled = 0;
    for (const tableId of await listTablesToSettle(sql, house)) {
      signal.throwIfAborted();
      settled += await settleEnded(sql, tableId);
    }
    let voided = 0;
    for (const tableId of await listTablesToRevise(sql, house)) {
      signal.throwIfAborted();
      voided += (await sql.begin((tx) => reviseScores(tx, tableId))).voided;
    }
    const tables = await listTablesToAdd(sql, house);
    const ids = tables.map(({ id }) => id);
    const { damaged, ...added } = await addAccuracy(sql, ids, signal);
    if (ids.length > 0) published(ids);
    const alerts = damaged.map(({ tableId, reason }) => {
      const subject = tables.find(({ id }) => id === tableId)?.name ?? String(tableId);
      const text = `${subject}: its accuracy stands still, since a row is damaged (${reason}); run \`roundhouse verify --table ${subject}\``;
      return { subject, text };
    });
    if (ids.length > 0) await syncAlertsWithin(sql, log, { kind: "scoring", within: `${house}/` }, alerts);
    const runs = await requestRollingRuns(sql, house);
    for (const run of runs) await enqueue(calibrateTable, run);
    const changes = Object.entries({ settled, voided, damaged: damaged.length }).filter(([, count]) => count > 0);
    return { ...added, calibrations: runs.length, ...Object.fromEntries(changes) };
  },
});
