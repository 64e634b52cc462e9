import { z } from "zod";
import { listHousesToCalibrate, requestRollingRuns } from "../src/forecasts/calibration-store.ts";
import { publishHouse } from "../src/forecasts/publish.ts";
import { scoreHouse } from "../src/forecasts/score.ts";
import { listHousesToScore } from "../src/forecasts/score-store.ts";
import { job } from "../src/queue/job.ts";
import calibrateTable from "./calibrate-table.ts";

/**
 * Hold every forecast against its rounds, once, and sum what came out.
 *
 * Hour rows are made anew from the scores and never incremented, so running again, late or twice gives the same
 * numbers; what callers see is the sum of hour rows, at most every ten seconds. Tables that have learned enough since
 * their last calibration are handed on.
 */
export default job({
  name: "score-accuracy",
  payload: z.object({ house: z.string() }),
  key: ({ house }) => house,
  schedule: null,
  sweep: async ({ sql }) => [...(await listHousesToScore(sql)), ...(await listHousesToCalibrate(sql))],
  concurrency: 8,
  timeoutMs: 60_000,
  retry: { attempts: 5, firstMs: 1000, maxMs: 60_000 },

  async run({ house }, { sql, signal, enqueue, published }) {
    const counts = await scoreHouse(sql, house, signal);
    const rows = await publishHouse(sql, house, signal);
    if (rows > 0) published();
    const runs = await requestRollingRuns(sql, house);
    for (const run of runs) await enqueue(calibrateTable, run);
    return { ...counts, published: rows, calibrations: runs.length };
  },
});
