import { z } from "zod";
import { openAlert, syncAlertsWithin } from "../src/alerts/store.ts";
import { issueForHouse } from "../src/forecasts/issue/issue.ts";
import { listHousesToIssue } from "../src/forecasts/issue/tables-to-issue-store.ts";
import { job } from "../src/queue/job.ts";

/**
 * Learn what is new and say what comes next, before it can be known.
 *
 * Rounds are learned in the order in which we took them in, under the lock under which they are added; the forecast of
 * the round after the newest, and the next window of each feature whose last one has ended, are then inserted in the
 * same transaction. Where the next round may already be in flight,
 * nothing is said at all: a round in flight is likelier to be a long one, and leaving it out afterwards would bias
 * what is measured.
 */
export default job({
  name: "issue-forecasts",
  payload: z.object({ house: z.string() }),
  key: ({ house }) => house,
  schedule: null,
  sweep: ({ sql }) => listHousesToIssue(sql),
  concurrency: 100, // houses that come at the same time share a transaction
  timeoutMs: 30_000,
  retry: { attempts: 5, firstMs: 500, maxMs: 30_000 },

  async run({ house }, { sql, log, signal, follow, published }) {
    const { damaged, unread, unfinished, ...counts } = await issueForHouse(sql, house, {
      signal,
      committed: published,
      issued: follow,
    });
    // closed by calibrate-table, once a replay has met the live state again
    for (const { table, reason } of damaged) {
      const text = `${table} learns and forecasts nothing: ${reason}`;
      await openAlert(sql, log, { kind: "calibration", subject: table, text });
    }
    const alerts = unread.map(({ table, reason }) => ({
      subject: table,
      text: `what the reading of ${table} rests on is damaged (${reason}); it is made anew from the rounds`,
    }));
    await syncAlertsWithin(sql, log, { kind: "reading", within: `${house}/` }, alerts);
    return { ...counts, unfinished: unfinished ? 1 : 0, damaged: damaged.length + unread.length };
  },
});
