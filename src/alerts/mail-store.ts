import type { Queryable, Sql } from "../db/client.ts";
import { queueMail } from "../mail/outbox-store.ts";
import { alertLetter, type ReportedAlert, type UnnamedAlerts } from "./letter.ts";

/** Alerts that one mail names, of each kind as many as fit: more than there are kinds. */
const MOST_NAMED = 50;
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
 * minutes. An alert that opened and closed in between is in one mail. Of many alerts some of each kind are named, and the
 * others are counted. `site` is our public address. Returns the number of alerts that the mail reports.
 */
export async function queueAlertMail(sql: Sql, recipients: readonly string[], site: string | null): Promise<number> {
  return sql.begin(async (tx) => {
    // of two concurrent writers the constraint accepts one; the other waits here and then writes none
    const named = await tx<NamedAlert[]>`
      with pending as materialized (
        select kind, subject, text, opened_at, closed_at, opening_mailed_at
        from alerts
        where ${pendingOf(tx)}
        order by opened_at, kind, subject
        for update
      ),
      written as (
        insert into alert_mails (written_at, quiet, alerts)
        select at, tstzrange(at, at + ${QUIET_MINUTES} * interval '1 minute'), n
        from clock_timestamp() as at
        cross join (select count(*)::integer as n from pending) counted
        where n > 0
        on conflict do nothing
        returning written_at
      ),
      mailed as (
        update alerts a
        set
          opening_mailed_at = coalesce(a.opening_mailed_at, clock_timestamp()),
          recovery_mailed_at = case when p.closed_at is not null then clock_timestamp() end
        from pending p
        cross join written
        where a.kind = p.kind
          and a.subject = p.subject
          and a.opened_at = p.opened_at
      )
      select
        kind,
        subject,
        text,
        utc_text(opened_at) as "openedAt",
        utc_text(closed_at) as "closedAt",
        opening_mailed_at is null as "isNew",
        "allOpen",
        "allOver"
      from (
        select
          *,
          row_number() over (partition by kind order by closed_at is not null, opened_at, subject) as place,
          (count(*) filter (where closed_at is null) over (partition by kind))::integer as "allOpen",
          (count(*) filter (where closed_at is not null) over (partition by kind))::integer as "allOver"
        from pending
        cross join written
      ) ranked
      order by place, opened_at, kind, subject
      limit ${MOST_NAMED}`;
    if (named.length === 0) return 0;
    const unnamed = unnamedOf(named);
    const letter = alertLetter(named, site, unnamed);
    for (const recipient of recipients) {
      await queueMail(tx, { ...letter, recipient });
    }
    return unnamed.reduce((sum, { open, over }) => sum + open + over, named.length);
  });
}

/** An alert with the numbers of all pending alerts of its kind. */
interface NamedAlert extends ReportedAlert {
  allOpen: number;
  allOver: number;
}

function unnamedOf(named: readonly NamedAlert[]): UnnamedAlerts[] {
  return [...Map.groupBy(named, ({ kind }) => kind)].flatMap(([kind, alerts]) => {
    const open = alerts.filter(({ closedAt }) => closedAt === null).length;
    const [{ allOpen, allOver } = { allOpen: 0, allOver: 0 }] = alerts;
    const rest = { kind, open: allOpen - open, over: allOver - (alerts.length - open) };
    return rest.open + rest.over > 0 ? [rest] : [];
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
