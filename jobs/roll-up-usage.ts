import { z } from "zod";
import { listOpenSubjects, syncAlertsWithin } from "../src/alerts/store.ts";
import { job } from "../src/queue/job.ts";
import { hasFactsOf, listDays, listUsageDifferences } from "../src/usage/store.ts";

/** Its subjects begin with the day: `2026-11-21 account 7`. */
const ALERT = "usage";
/** Each run reads every fact of the day (0.7 s for a million), to find what only a manual change or a loss can cause. */
const EVERY_MS = 600_000;

/**
 * Sum the meter's facts of a day and compare them with the quotas and counts that callers are held to and shown.
 *
 * All three are written in one transaction, so a difference is an alert: a row was changed manually or lost. Yesterday is
 * compared with today, so that calls around midnight are included. A day with a difference is compared until the three
 * agree again, or until its facts are dropped.
 */
export default job({
  name: "roll-up-usage",
  payload: z.object({ day: z.iso.date() }),
  key: ({ day }) => day,
  schedule: async ({ sql }) => {
    const inDoubt = (await listOpenSubjects(sql, ALERT)).map((subject) => subject.slice(0, "2026-11-21".length));
    const days = [...new Set([...(await listDays(sql, 2)), ...inDoubt])];
    return days.map((day, index) => ({
      payload: { day },
      everyMs: EVERY_MS,
      offsetMs: ((index * EVERY_MS) / 2) % EVERY_MS,
    }));
  },
  sweep: null,
  concurrency: 2,
  timeoutMs: 60_000,
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // the next tick is the retry
  pool: "long",

  async run({ day }, { sql, log }) {
    const within = `${day} `;
    if (!(await hasFactsOf(sql, day))) {
      await syncAlertsWithin(sql, log, { kind: ALERT, within }, []);
      return { differences: 0 };
    }
    const differences = await listUsageDifferences(sql, day);
    const alerts = differences.map(({ accountId, quota, counts, facts }) => ({
      subject: `${day} account ${accountId}`,
      text: `account ${accountId} used ${quota} calls on ${day} by its quota, ${counts} by its counts and ${facts} by the facts of the meter`,
    }));
    await syncAlertsWithin(sql, log, { kind: ALERT, within }, alerts);
    return { differences: differences.length };
  },
});
