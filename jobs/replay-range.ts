import { z } from "zod";
import { runWaitingCalibration } from "../src/calibration/manual-calibration.ts";
import { listWaitingManualRuns } from "../src/calibration/manual-run-store.ts";
import { job } from "../src/queue/job.ts";

/** Small chunks, since this process has other work; a killed worker loses a second or so of the run. */
const STEPS = { roundsPerChunk: 2000, roundsPerCheckpoint: 50_000 };

/**
 * Replay a range of a table through a model, because a person asked for it.
 *
 * Whoever asks leaves a row, never a message, so that a run is begun though Redis was away; and whoever cancels leaves a
 * mark on it, which is seen at the next chunk. What is done so far is kept: a run that was stopped continues from there.
 */
export default job({
  name: "replay-range",
  payload: z.object({ run: z.string().regex(/^\d{1,18}$/) }),
  key: ({ run }) => run,
  schedule: null,
  sweep: ({ sql }) => listWaitingManualRuns(sql),
  concurrency: 1,
  timeoutMs: 600_000, // it leaves a place to continue from, and the sweep sends the next worker
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // a person sees why it failed and decides
  pool: "long",

  async run({ run }, { sql, signal }) {
    const outcome = await runWaitingCalibration(sql, run, { signal, steps: STEPS });
    return { [outcome]: 1 };
  },
});
