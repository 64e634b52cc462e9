import type { Queryable } from "../db/client.ts";
import type { ReportedAlert } from "./letter.ts";

/** Alerts in one message; the others follow in the next one. */
const MOST_ALERTS = 50;
/** Recoveries older than this are not posted, for example if STAFF_WEBHOOK_URL was set only now. */
const NEWS_FOR_HOURS = 24;
/** The first retry, doubled with each failure up to the last. */
const RETRY_SECONDS = { first: 10, most: 600 };

/** Whether alerts opened or closed since the last post, and no retry is pending. */
export async function isAlertToPost(sql: Queryable): Promise<boolean> {
  const rows = await sql`
    select
    where exists (
        select
        from alerts
        where ${pendingOf(sql)}
      )
      and not exists (
        select
        from staff_webhook_failure
        where next_try_at > clock_timestamp()
      )`;
  return rows.length > 0;
}

/**
 * Alerts that opened or ended since they were last posted, at most 50: the oldest of each kind first, so that many of one
 * kind delay no other.
 */
export async function listAlertsToPost(sql: Queryable): Promise<ReportedAlert[]> {
  return sql<ReportedAlert[]>`
    select
      kind,
      subject,
      text,
      utc_text(opened_at) as "openedAt",
      utc_text(closed_at) as "closedAt",
      opening_posted_at is null as "isNew"
    from alerts
    where ${pendingOf(sql)}
    order by row_number() over (partition by kind order by opened_at, subject), opened_at, kind, subject
    limit ${MOST_ALERTS}`;
}

/** Notes what was posted, each alert as it was read: one that ended meanwhile is posted again as over. */
export async function noteAlertsPosted(sql: Queryable, alerts: readonly ReportedAlert[]): Promise<void> {
  await sql`
    with posted as (
      select a.kind, a.subject, a.opened_at, one.is_over
      from unnest(
        ${alerts.map(({ kind }) => kind)}::text[],
        ${alerts.map(({ subject }) => subject)}::text[],
        ${alerts.map(({ openedAt }) => openedAt)}::text[],
        ${alerts.map(({ closedAt }) => closedAt !== null)}::boolean[]
      ) as one (kind, subject, opened_at, is_over)
      join alerts a
        on a.kind = one.kind
        and a.subject = one.subject
        and a.opened_at = one.opened_at::timestamptz
      order by a.opened_at, a.kind, a.subject
      for no key update of a
    )
    update alerts a
    set
      opening_posted_at = coalesce(a.opening_posted_at, clock_timestamp()),
      recovery_posted_at = case when posted.is_over then clock_timestamp() end
    from posted
    where a.kind = posted.kind
      and a.subject = posted.subject
      and a.opened_at = posted.opened_at`;
  await clearPostFailure(sql);
}

/** Notes that the webhook accepts messages, or that none is configured. */
export async function clearPostFailure(sql: Queryable): Promise<void> {
  await sql`delete from staff_webhook_failure`;
}

/** Notes that the webhook accepts nothing and when it is tried next: in 10 s, doubled up to ten minutes. Returns for how many seconds it has failed. */
export async function savePostFailure(sql: Queryable, reason: string): Promise<number> {
  const { first, most } = RETRY_SECONDS;
  const [row] = await sql<{ seconds: number }[]>`
    insert into staff_webhook_failure as known (next_try_at, reason)
    values (clock_timestamp() + ${first} * interval '1 second', ${reason})
    on conflict (is_only) do update
    set
      tries = known.tries + 1,
      next_try_at = clock_timestamp() + least(${first} * 2 ^ least(known.tries, 20), ${most}) * interval '1 second',
      reason = excluded.reason
    returning extract(epoch from clock_timestamp() - since)::float8 as seconds`;
  return row?.seconds ?? 0;
}

/** SQL condition: alerts whose opening, or whose recent end, was not posted. */
function pendingOf(sql: Queryable) {
  return sql`
    (opening_posted_at is null or recovery_posted_at is null)
      and (
        (closed_at is null and opening_posted_at is null)
        or closed_at > clock_timestamp() - ${NEWS_FOR_HOURS} * interval '1 hour'
      )`;
}
