import { z } from "zod";
import { closeAlert, openAlert } from "../src/alerts/store.ts";
import { runRollingCalibration } from "../src/calibration/calibrate.ts";
import { findTableOfRun, listWaitingRuns } from "../src/calibration/runs/rolling-run-store.ts";
import { job } from "../src/queue/job.ts";

/** The kind of the alert about a table whose rounds cannot be replayed. */
const FAILED = "calibration_failed";

/**
 * Replays what the live model learned, and checks that its state is right.
 *
 * Every 1,000 rounds or 15 minutes a table's rounds since the last calibration go through the model again, from that
 * calibration's state. The result must be the live state, bit for bit; if it is not, an alert is raised, because every
 * forecast since then is based on a state that cannot be recomputed.
 */
export default job({
  name: "calibrate-table",
  payload: z.object({ run: z.string().regex(/^\d{1,18}$/) }),
  key: ({ run }) => run,
  schedule: null,
  sweep: ({ sql }) => listWaitingRuns(sql),
  concurrency: 1,
  timeoutMs: 600_000,
  retry: { attempts: 5, firstMs: 5000, maxMs: 300_000 },
  pool: "long",

  async run({ run }, { sql, log, signal, published }) {
    const result = await runRollingCalibration(sql, run, signal);
    if (result === null) {
      const ended = await findTableOfRun(sql, run);
      if (ended?.isOpen === false) await closeAlert(sql, log, { kind: FAILED, subject: ended.table });
      return { skipped: 1 };
    }
    const { table, version, rounds, isMet, replayed, live, stored } = result;
    await closeAlert(sql, log, { kind: FAILED, subject: table });
    const alert = { kind: "calibration", subject: table };
    if (isMet) await closeAlert(sql, log, alert);
    else {
      const text =
        `calibration ${version} of ${table} replayed its rounds to the state ${replayed}, but the live state is ${live}` +
        `${live === stored ? "" : ` (and is stored as ${stored})`}: do not trust its forecasts until it is rebuilt`;
      await openAlert(sql, log, { ...alert, text });
    }
    published();
    return { rounds, met: isMet ? 1 : 0, different: isMet ? 0 : 1 };
  },

  async gaveUp({ run }, reason, { sql, log }) {
    const failed = await findTableOfRun(sql, run);
    if (failed?.isOpen !== true) return; // it was cancelled
    const { table } = failed;
    const text = `the calibration of ${table} failed, and is tried again after 15 minutes: ${reason}`;
    await openAlert(sql, log, { kind: FAILED, subject: table, text });
  },
});
