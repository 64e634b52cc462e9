import { z } from "zod";
import { runWaitingCalibration } from "../src/calibration/manual-calibration.ts";
import { listWaitingManualRuns } from "../src/calibration/runs/manual-run-store.ts";
import { job } from "../src/queue/job.ts";

/** Small chunks, since this process has other work; a killed worker loses a second or so of the run. */
const STEPS = { roundsPerChunk: 2000, roundsPerCheckpoint: 50_000 };

/**
 * Replays a range of a table through a model, at the request of staff.
 *
 * A request is a row, so a run starts even if Redis was unavailable when it was made; a cancellation is a mark on that row,
 * which is read before each chunk. Progress is kept: a stopped run resumes from its last checkpoint.
 */
export default job({
  name: "replay-range",
  payload: z.object({ run: z.string().regex(/^\d{1,18}$/) }),
  key: ({ run }) => run,
  schedule: null,
  sweep: ({ sql }) => listWaitingManualRuns(sql),
  concurrency: 1,
  timeoutMs: 600_000, // it stores a checkpoint, and the sweep queues the rest
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // staff see why it failed and decide
  pool: "long",

  async run({ run }, { sql, signal }) {
    const outcome = await runWaitingCalibration(sql, run, { signal, steps: STEPS });
    return { [outcome]: 1 };
  },
});
