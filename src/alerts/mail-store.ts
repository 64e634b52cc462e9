import type { Queryable, Sql } from "../db/client.ts";
import { queueMail } from "../mail/outbox-store.ts";
import { alertLetter, type ReportedAlert } from "./letter.ts";

/** Alerts in one mail; the others follow in the next one. */
const MOST_ALERTS = 50;
/** At most six mails per hour, however many alerts there are. */
const QUIET_MINUTES = 10;
/** Recoveries older than this are not mailed, for example if ALERT_EMAIL was set only now. */
const NEWS_FOR_HOURS = 24;

/** Whether alerts opened or closed since the last mail, and no mail was written in the last ten minutes. */
export async function hasAlertsToMail(sql: Queryable): Promise<boolean> {
  const rows = await sql`
    select
    where not exists (
        select
        from alert_mails
        where quiet @> clock_timestamp()
      )
      and exists (
        select
        from alerts
        where ${pendingOf(sql)}
      )`;
  return rows.length > 0;
}

/**
 * Writes one mail to each recipient about all alerts that opened or closed since the last one, at most once in ten
 * minutes. An alert that opened and closed in between is in one mail. `site` is our public address. Returns the number of
 * alerts in the mail.
 */
export async function queueAlertMail(sql: Sql, recipients: readonly string[], site: string | null): Promise<number> {
  return sql.begin(async (tx) => {
    const alerts = await tx<ReportedAlert[]>`
      select
        kind,
        subject,
        text,
        utc_text(opened_at) as "openedAt",
        utc_text(closed_at) as "closedAt",
        opening_mailed_at is null as "isNew"
      from alerts
      where ${pendingOf(tx)}
      order by opened_at, kind, subject
      limit ${MOST_ALERTS}
      for update`;
    if (alerts.length === 0) return 0;
    // of two concurrent writers the constraint accepts one; the other waits here and then writes none
    const written = await tx`
      insert into alert_mails (written_at, quiet, alerts)
      select at, tstzrange(at, at + ${QUIET_MINUTES} * interval '1 minute'), ${alerts.length}
      from clock_timestamp() as at
      on conflict do nothing`;
    if (written.count === 0) return 0;
    const letter = alertLetter(alerts, site);
    for (const recipient of recipients) {
      await queueMail(tx, { ...letter, recipient });
    }
    await tx`
      update alerts
      set
        opening_mailed_at = coalesce(opening_mailed_at, clock_timestamp()),
        recovery_mailed_at = case when closed_at is not null then clock_timestamp() end
      from unnest(
        ${alerts.map(({ kind }) => kind)}::text[],
        ${alerts.map(({ subject }) => subject)}::text[],
        ${alerts.map(({ openedAt }) => openedAt)}::text[]
      ) as mailed (kind, subject, opened_at)
      where alerts.kind = mailed.kind
        and alerts.subject = mailed.subject
        and alerts.opened_at = mailed.opened_at::timestamptz`;
    return alerts.length;
  });
}

/** SQL condition: alerts whose opening, or whose recent end, was not mailed. */
function pendingOf(sql: Queryable) {
  return sql`
    (opening_mailed_at is null or recovery_mailed_at is null)
      and (
        (closed_at is null and opening_mailed_at is null)
        or closed_at > clock_timestamp() - ${NEWS_FOR_HOURS} * interval '1 hour'
      )`;
}
