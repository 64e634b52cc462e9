import { z } from "zod";
import { authSecret } from "../src/config/auth-secret.ts";
import { mailKeysOf } from "../src/mail/seal.ts";
import { hasAlertsToMail, queueAlertMail } from "../src/alerts/mail-store.ts";
import { closeAlert, openAlert, syncAlerts, type Wrong } from "../src/alerts/store.ts";
import { FAILURE_ALERT_SECONDS, PUT_OFF_ALERT_MINUTES } from "../src/mail/limits.ts";
import {
  isMailWaiting,
  listLateMails,
  listPutOffMails,
  listRefusals,
  type PutOffMails,
} from "../src/mail/outbox-store.ts";
import { sendWaitingMails, withoutAddresses } from "../src/mail/send.ts";
import { senderOf } from "../src/mail/sender.ts";
import { job, type Counts, type JobContext } from "../src/queue/job.ts";

/**
 * Writes alert mails to ALERT_EMAIL, and sends all waiting mails.
 *
 * A mail is a row that is written in the transaction of its cause, so there is a mail exactly for what happened. A worker
 * that dies between sending a mail and storing that sends it again with the same Message-ID: a mail can arrive twice and
 * is never lost. What the server refuses permanently is not retried; everything else is retried for three days. Without
 * SMTP_URL mails wait, and staff read them at /ops/mails.
 */
export default job({
  name: "send-mail",
  payload: z.object({}),
  key: () => "all",
  schedule: null,
  sweep: async ({ sql, settings }) => {
    const isWork =
      (settings.SMTP_URL !== undefined && (await isMailWaiting(sql))) ||
      (settings.ALERT_EMAIL.length > 0 && (await hasAlertsToMail(sql)));
    return isWork ? [{}] : [];
  },
  concurrency: 1,
  timeoutMs: 300_000,
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // the sweep finds what is left undone

  async run(_, context) {
    const { sql, settings } = context;
    const { ALERT_EMAIL, PUBLIC_URL, SMTP_URL } = settings;
    const alerts = ALERT_EMAIL.length === 0 ? 0 : await queueAlertMail(sql, ALERT_EMAIL, PUBLIC_URL ?? null);
    return { alerts, ...(SMTP_URL === undefined ? {} : await send(context, SMTP_URL)) };
  },
});

async function send({ sql, settings, log, signal }: JobContext, url: string): Promise<Counts> {
  const alert = { kind: "mail_server", subject: "smtp" };
  const counts = await sendWaitingMails({
    sql,
    url,
    from: senderOf(settings),
    keys: mailKeysOf(await authSecret(settings), settings.AUTH_SECRET_PREVIOUS),
    log,
    signal,
    async onServerState(seconds, reason) {
      if (seconds === 0) return closeAlert(sql, log, alert);
      if (seconds < FAILURE_ALERT_SECONDS) return;
      const text = `the mail server has taken no mail for ${Math.floor(seconds)} s: ${reason}; no mail is sent until it does: check that it runs, and SMTP_URL (\`roundhouse doctor\` tries it)`;
      await openAlert(sql, log, { ...alert, text });
    },
  });
  if (counts.refused > 0) await syncAlerts(sql, log, "mail_refused", await listRefusals(sql));
  else if (counts.sent > 0) await closeAlert(sql, log, { kind: "mail_refused", subject: "smtp" });
  if (counts.givenUp > 0) await syncAlerts(sql, log, "mail_given_up", await listLateMails(sql));
  await syncAlerts(sql, log, "mail_late", (await listPutOffMails(sql)).map(putOffAlert));
  return { ...counts };
}

function putOffAlert({ isUnreadable, mails, reason }: PutOffMails): Wrong {
  const late = `${mails} mails could not be sent within ${PUT_OFF_ALERT_MINUTES} minutes`;
  return isUnreadable
    ? {
        subject: "AUTH_SECRET",
        text: `${late}: a worker cannot decrypt their links; give each worker the AUTH_SECRET of the console`,
      }
    : {
        subject: "smtp",
        text: `${late}: the mail server puts all mails off (${withoutAddresses(reason)}); check the quota of the account of SMTP_URL; /ops/mails shows each response`,
      };
}
