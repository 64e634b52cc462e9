import { z } from "zod";
import { syncAlerts } from "../src/alerts/store.ts";
import { job } from "../src/queue/job.ts";
import { listDays, listQuotaDifferences, rollUpDay } from "../src/usage/store.ts";

/**
 * Sum the meter's facts by hour, day and month.
 *
 * Rollups are made anew from the facts and never incremented. Yesterday is made with today, so that calls around
 * midnight are all in; a day whose facts and quotas disagree is an alert, since one of the two was changed by hand.
 */
export default job({
  name: "roll-up-usage",
  payload: z.object({ day: z.iso.date() }),
  key: ({ day }) => day,
  schedule: async ({ sql }) =>
    (await listDays(sql, 2)).map((day, index) => ({ payload: { day }, everyMs: 60_000, offsetMs: index * 30_000 })),
  sweep: null,
  concurrency: 2,
  timeoutMs: 60_000,
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // the next minute is the retry

  async run({ day }, { sql, log }) {
    const rows = await rollUpDay(sql, day);
    const differences = await listQuotaDifferences(sql, day);
    await syncAlerts(
      sql,
      log,
      `usage of ${day}`,
      differences.map(({ accountId, quota, facts }) => ({
        subject: `account ${accountId}`,
        text: `account ${accountId} used ${quota} calls on ${day} by its quota and ${facts} by the facts of the meter`,
      })),
    );
    return { rows, differences: differences.length };
  },
});
