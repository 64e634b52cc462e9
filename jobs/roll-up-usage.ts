import { z } from "zod";
import { listOpenSubjects, syncAlertsWithin } from "../src/alerts/store.ts";
import { job } from "../src/queue/job.ts";
import { hasFactsOf, listDays, listQuotaDifferences, rollUpDay } from "../src/usage/store.ts";

/** Its subjects begin with the day: `2026-11-21 account 7`. */
const ALERT = "usage";

/**
 * Sum the meter's facts by hour, day and month.
 *
 * Rollups are made anew from the facts and never incremented. Yesterday is made with today, so that calls around
 * midnight are all in; a day whose facts and quotas disagree is an alert, since one of the two was changed by hand. Such a
 * day is looked at until they agree again, or until its facts are dropped, when nobody can tell any more.
 */
export default job({
  name: "roll-up-usage",
  payload: z.object({ day: z.iso.date() }),
  key: ({ day }) => day,
  schedule: async ({ sql }) => {
    const inDoubt = (await listOpenSubjects(sql, ALERT)).map((subject) => subject.slice(0, "2026-11-21".length));
    const days = [...new Set([...(await listDays(sql, 2)), ...inDoubt])];
    return days.map((day, index) => ({ payload: { day }, everyMs: 60_000, offsetMs: (index * 30_000) % 60_000 }));
  },
  sweep: null,
  concurrency: 2,
  timeoutMs: 60_000,
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // the next minute is the retry
  pool: "long",

  async run({ day }, { sql, log }) {
    const within = `${day} `;
    if (!(await hasFactsOf(sql, day))) {
      await syncAlertsWithin(sql, log, { kind: ALERT, within }, []);
      return { rows: 0, differences: 0 };
    }
    const rows = await rollUpDay(sql, day);
    const differences = await listQuotaDifferences(sql, day);
    const alerts = differences.map(({ accountId, quota, facts }) => ({
      subject: `${day} account ${accountId}`,
      text: `account ${accountId} used ${quota} calls on ${day} by its quota and ${facts} by the facts of the meter`,
    }));
    await syncAlertsWithin(sql, log, { kind: ALERT, within }, alerts);
    return { rows, differences: differences.length };
  },
});
