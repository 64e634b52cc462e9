/** A process that does a run by hand in small steps, and says on stdout how far it is; to be killed. */
import { connect } from "../../src/db/client.ts";
import { openBacktestFile } from "../../src/cli/data/backtest-file.ts";
import { runManualCalibration } from "../../src/calibration/manual-calibration.ts";

const [url = "", run = ""] = process.argv.slice(2);
const sql = connect(url, { name: "test calibration", max: 2 });
await runManualCalibration(sql, run, {
  signal: new AbortController().signal,
  steps: { roundsPerChunk: 50, roundsPerCheckpoint: 300 },
  progress: (done) => process.stdout.write(`${done}\n`),
  openFile: openBacktestFile,
});
await sql.end();
