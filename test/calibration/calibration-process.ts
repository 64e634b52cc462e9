/** A process that executes a manual run in small steps, prints its progress and blocks after 800 rounds, to be killed there. */
import { connect } from "../../src/db/client.ts";
import { openBacktestFile } from "../../src/cli/data/backtest-file.ts";
import { runManualCalibration } from "../../src/calibration/manual-calibration.ts";

const [url = "", run = ""] = process.argv.slice(2);
const sql = connect(url, { name: "test calibration", max: 2 });
await runManualCalibration(sql, run, {
  signal: new AbortController().signal,
  steps: { roundsPerChunk: 50, roundsPerCheckpoint: 300 },
  progress(done) {
    process.stdout.write(`${done}\n`);
    if (done >= 800) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 120_000);
  },
  openFile: openBacktestFile,
});
await sql.end();
