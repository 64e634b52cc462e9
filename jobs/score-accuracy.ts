import { z } from "zod";
import { syncAlertsWithin } from "../src/alerts/store.ts";
import { listHousesToCalibrate, requestRollingRuns } from "../src/forecasts/calibration/rolling-run-store.ts";
import { publishHouse } from "../src/forecasts/accuracy/publish.ts";
import { scoreHouse, type Ended } from "../src/forecasts/score/score.ts";
import { listHousesToScore } from "../src/forecasts/score/tables-to-score-store.ts";
import { listPayloadsOfRounds } from "../src/forecasts/score/trace-store.ts";
import { job, type Counts } from "../src/queue/job.ts";
import calibrateTable from "./calibrate-table.ts";

/**
 * Hold every forecast against its rounds, once, and sum what came out.
 *
 * Hour rows are made anew from the scores and never incremented, so running again, late or twice gives the same
 * numbers; what callers see is the sum of hour rows. Both are made at most every ten seconds, since an hour is summed
 * from all that happened in it. Tables that have learned enough since
 * their last calibration are handed on.
 */
export default job({
  name: "score-accuracy",
  payload: z.object({ house: z.string() }),
  key: ({ house }) => house,
  schedule: null,
  sweep: async ({ sql }) => [...(await listHousesToScore(sql)), ...(await listHousesToCalibrate(sql))],
  concurrency: 100, // houses that come at the same time share a transaction
  timeoutMs: 60_000,
  retry: { attempts: 5, firstMs: 1000, maxMs: 60_000 },

  async run({ house }, { sql, log, signal, follow, enqueue, published }) {
    const ended: Ended[] = [];
    let disputed = 0;
    const { damaged, ...counts } = await scoreHouse(sql, house, signal, (some, ofThem) => {
      ended.push(...some);
      disputed += ofThem;
    });
    follow(await listPayloadsOfRounds(sql, ended.flatMap(roundsOf)));
    const { hours, rows, damaged: unpublished } = await publishHouse(sql, house, signal);
    // one alert a table: what cannot be scored is not published anew either
    const said = new Map([
      ...unpublished.map(
        ({ table, reason }) =>
          [table, `its accuracy is not published, since sums of it are damaged (${reason})`] as const,
      ),
      ...damaged.map(
        ({ table, reason }) => [table, `it is not scored, since a row of it is damaged (${reason})`] as const,
      ),
    ]);
    const alerts = [...said].map(([table, what]) => ({
      subject: table,
      text: `${table}: ${what}; run \`roundhouse verify --table ${table}\``,
    }));
    await syncAlertsWithin(sql, log, { kind: "scoring", within: `${house}/` }, alerts);
    if (rows > 0) published();
    const runs = await requestRollingRuns(sql, house);
    for (const run of runs) await enqueue(calibrateTable, run);
    return {
      ...counts,
      ...countVoids(ended, disputed),
      hours,
      published: rows,
      calibrations: runs.length,
      ...(said.size > 0 ? { damaged: said.size } : {}),
    };
  },
});

/** The rounds that a forecast is about: the one it was issued after, and the one that ended it. */
function roundsOf({ tableId, cutoffSeq, settledSeq }: Ended): { tableId: number; seq: bigint }[] {
  return [cutoffSeq, settledSeq].map((seq) => ({ tableId, seq }));
}

/** How many became void, by reason; nothing where none did. `disputed` had their score before. */
function countVoids(ended: readonly Ended[], disputed: number): Counts {
  const counts: Counts = disputed === 0 ? {} : { void_quarantine: disputed };
  for (const { status } of ended) if (status !== "scored") counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
