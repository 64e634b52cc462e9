import { z } from "zod";
import { alertMessage } from "../src/alerts/letter.ts";
import { closeAlert, openAlert } from "../src/alerts/store.ts";
import { isAlertToPost, listAlertsToPost, noteAlertsPosted, savePostFailure } from "../src/alerts/webhook-store.ts";
import { postMessage } from "../src/alerts/webhook.ts";
import { job } from "../src/queue/job.ts";

const ALERT = { kind: "staff_webhook", subject: "webhook" };
/** The second failure comes ten seconds after the first: an alert then, and none for one hiccup. */
const FAILING_SECONDS = 5;

/**
 * Post alerts that opened or closed to STAFF_WEBHOOK_URL, if it is set.
 *
 * What is to be posted follows from the alerts themselves. A worker that dies between posting a message and noting that
 * posts it again: a message may arrive twice and is never lost.
 */
export default job({
  name: "post-alerts",
  payload: z.object({}),
  key: () => "all",
  schedule: null,
  sweep: async ({ sql, settings }) =>
    settings.STAFF_WEBHOOK_URL !== undefined && (await isAlertToPost(sql)) ? [{}] : [],
  concurrency: 1,
  timeoutMs: 30_000,
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // what is left undone the sweep finds

  async run(_, { sql, settings, log, signal }) {
    const { STAFF_WEBHOOK_URL: url, PUBLIC_URL: site } = settings;
    const pending = url === undefined ? [] : await listAlertsToPost(sql);
    if (url === undefined || pending.length === 0) return { posted: 0 };
    const { text: message, alerts } = alertMessage(pending, site ?? null);
    const reason = await postMessage(url, message, signal);
    if (reason !== null) {
      const seconds = await savePostFailure(sql, reason);
      log.warn({ alerts: alerts.length }, `the staff webhook did not accept a message: ${reason}`);
      const text = `the staff webhook has accepted no message for ${Math.floor(seconds)} s: ${reason}; alerts are posted once it does: see STAFF_WEBHOOK_URL`;
      if (seconds >= FAILING_SECONDS) await openAlert(sql, log, { ...ALERT, text });
      return { failed: 1 };
    }
    await noteAlertsPosted(sql, alerts);
    await closeAlert(sql, log, ALERT);
    return { posted: alerts.length };
  },
});
