import { z } from "zod";
import { listOpenSubjects, syncAlertsWithin } from "../src/alerts/store.ts";
import { job } from "../src/queue/job.ts";
import {
  hasFactsOf,
  listDueDays,
  listUsageDifferences,
  saveCompared,
  startRecount,
  sumNextHour,
  type UsageDay,
} from "../src/usage/days-store.ts";

/** Its subjects begin with the day: `2026-11-21 account 7`. */
const ALERT = "usage";
/** Summing stops here, and the next run continues from its mark: a minute is the run's time limit. */
const SUM_FOR_MS = 40_000;

/**
 * Sum the meter's facts of a day and compare them with the quotas and counts that callers are held to and shown.
 *
 * All three are written in one transaction, so a difference is an alert: a row was changed manually or lost. Facts are
 * summed from a mark, so a comparison costs what arrived since the last one. Before a difference is believed, and when
 * the day is over, they are summed again from its beginning. A day without a difference is then closed; one with a
 * difference is compared until the three agree again, or until its facts are dropped.
 */
export default job({
  name: "roll-up-usage",
  payload: z.object({ day: z.iso.date() }),
  key: ({ day }) => day,
  schedule: null,
  async sweep({ sql }) {
    const inDoubt = (await listOpenSubjects(sql, ALERT)).map((subject) => subject.slice(0, "2026-11-21".length));
    const dropped: string[] = [];
    for (const day of new Set(inDoubt)) if (!(await hasFactsOf(sql, day))) dropped.push(day);
    return [...dropped, ...(await listDueDays(sql))].map((day) => ({ day }));
  },
  concurrency: 2,
  timeoutMs: 60_000,
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // the next sweep is the retry
  pool: "long",

  async run({ day }, { sql, log, signal }) {
    const within = `${day} `;
    if (!(await hasFactsOf(sql, day))) {
      await syncAlertsWithin(sql, log, { kind: ALERT, within }, []);
      return { differences: 0, behind: 0 };
    }
    const until = performance.now() + SUM_FOR_MS;
    const sum = async (): Promise<UsageDay> => {
      for (;;) {
        signal.throwIfAborted();
        const state = await sumNextHour(sql, day);
        if (state.isSummed || performance.now() > until) return state;
      }
    };
    let state = await sum();
    let differences = state.isSummed ? await listUsageDifferences(sql, day) : [];
    if (differences.length > 0 && !state.isRecount) {
      await startRecount(sql, day);
      state = await sum();
      differences = state.isSummed ? await listUsageDifferences(sql, day) : [];
    }
    if (!state.isSummed) return { differences: 0, behind: 1 };
    const alerts = differences.map(({ accountId, quota, counts, facts }) => ({
      subject: `${day} account ${accountId}`,
      text: `account ${accountId} used ${quota} calls on ${day} by its quota, ${counts} by its counts and ${facts} by the facts of the meter`,
    }));
    await syncAlertsWithin(sql, log, { kind: ALERT, within }, alerts);
    await saveCompared(sql, day, state.isOver && differences.length === 0);
    return { differences: differences.length, behind: 0 };
  },
});
