import type { Queryable, Sql } from "../db/client.ts";
import { queueMail } from "../mail/outbox-store.ts";
import { alertLetter, type ToldAlert } from "./letter.ts";

/** More than these in one mail no one reads; the rest is told with the next one. */
const MOST_TOLD = 50;
/** A storm of alerts is six mails in an hour, and none waits for longer than this. */
const QUIET_MINUTES = 10;
/** A recovery is told within this; later it is no news, such as when ALERT_EMAIL was set only now. */
const NEWS_FOR_HOURS = 24;

/** Whether there are alerts, or ends of them, to tell of, and no mail told of any in the last ten minutes. */
export async function isAlertToTell(sql: Queryable): Promise<boolean> {
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
        where ${untold(sql)}
      )`;
  return rows.length > 0;
}

/**
 * Writes one mail to each recipient about all alerts that opened or ended since the last one: one in ten minutes at
 * most. An alert that came and went meanwhile is notified of once. `site` is our public address. Gives how many alerts it
 * tells of.
 */
export async function queueAlertMail(sql: Sql, recipients: readonly string[], site: string | null): Promise<number> {
  return sql.begin(async (tx) => {
    const alerts = await tx<ToldAlert[]>`
      select
        kind,
        subject,
        text,
        utc_text(opened_at) as "openedAt",
        utc_text(closed_at) as "closedAt",
        opening_told_at is null as "isNew"
      from alerts
      where ${untold(tx)}
      order by opened_at, kind, subject
      limit ${MOST_TOLD}
      for update`;
    if (alerts.length === 0) return 0;
    // the constraint lets one mail through: whoever comes second waits here for the first, and then writes none
    const written = await tx`
      insert into alert_mails (written_at, quiet, told)
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
        opening_told_at = coalesce(opening_told_at, clock_timestamp()),
        recovery_told_at = case when closed_at is not null then clock_timestamp() end
      from unnest(
        ${alerts.map(({ kind }) => kind)}::text[],
        ${alerts.map(({ subject }) => subject)}::text[],
        ${alerts.map(({ openedAt }) => openedAt)}::text[]
      ) as told (kind, subject, opened_at)
      where alerts.kind = told.kind
        and alerts.subject = told.subject
        and alerts.opened_at = told.opened_at::timestamptz`;
    return alerts.length;
  });
}

/** Open and not told of; or ended lately, which was not told. */
function untold(sql: Queryable) {
  return sql`
    (opening_told_at is null or recovery_told_at is null)
      and (
        (closed_at is null and opening_told_at is null)
        or closed_at > clock_timestamp() - ${NEWS_FOR_HOURS} * interval '1 hour'
      )`;
}
