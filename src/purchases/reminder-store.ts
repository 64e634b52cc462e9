import type { Queryable, Sql, Transaction } from "../db/client.ts";
import { queueMail } from "../mail/outbox-store.ts";
import { type Ending, type EndingSoon, endsSoon, hasEnded, noticesOf } from "./reminder.ts";

/** A holder to notify that a plan ends, or has ended. */
interface Recipient {
  entitlementId: bigint;
  email: string;
}

/** What the notifications depend on. */
interface Site {
  /** The public address without a trailing slash; null if unknown. */
  site: string | null;
  /** Whether bank transfers are offered: then holders are reminded earlier. */
  hasBank: boolean;
}

/** E-mails per transaction. */
const BATCH = 100;
/** The longest time after an end that its notification is sent, for instance after an outage. */
const NEWS_DAYS = 14;

/** Whether a notification about the end of a plan is due. */
export async function hasHoldersToNotify(sql: Queryable, { hasBank }: Pick<Site, "hasBank">): Promise<boolean> {
  const [row] = await sql<{ isSo: boolean }[]>`
    select
      exists (${endsToRemind(sql, hasBank)})
      or exists (${endsToNotify(sql)}) as "isSo"`;
  return row?.isSo === true;
}

/**
 * Notifies holders by e-mail, once each: some days before their plan ends, and when it has ended. Not notified: holders
 * with a following plan, suspended or closed accounts, and plans that last hardly longer than the notice. The record of
 * the notification and the e-mail are one transaction.
 */
export async function notifyHolders(
  sql: Sql,
  { signal, ...site }: Site & { signal: AbortSignal },
): Promise<{ reminded: number; ended: number }> {
  const counts = { reminded: 0, ended: 0 };
  for (let notified = BATCH; notified === BATCH;) {
    signal.throwIfAborted();
    notified = await sql.begin((tx) => remind(tx, site));
    counts.reminded += notified;
  }
  for (let notified = BATCH; notified === BATCH;) {
    signal.throwIfAborted();
    notified = await sql.begin((tx) => notifyOfEnd(tx, site.site));
    counts.ended += notified;
  }
  return counts;
}

async function remind(tx: Transaction, site: Site): Promise<number> {
  const notified = await tx<(Recipient & EndingSoon)[]>`
    update entitlements e
    set reminded_at = clock_timestamp()
    from accounts a
    where a.id = e.account_id
      and e.id in (${endsToRemind(tx, site.hasBank)} limit ${BATCH} for no key update of e skip locked)
    returning
      e.id as "entitlementId",
      e.plan,
      utc_text(e.ends_at) as "endsAt",
      a.email,
      (select on_sale from plans where name = e.plan) as "isOnSale",
      ${isAnyOnSale(tx)} as "isAnyOnSale",
      floor(extract(epoch from e.ends_at - now()) / 86400)::integer as "daysLeft"`;
  for (const { entitlementId, email, ...ending } of notified) {
    const dedupKey = `plan ends ${entitlementId}`;
    await queueMail(tx, { ...endsSoon(ending, site), recipient: email, dedupKey });
  }
  return notified.length;
}

async function notifyOfEnd(tx: Transaction, site: string | null): Promise<number> {
  const notified = await tx<(Recipient & Ending)[]>`
    update entitlements e
    set end_notified_at = clock_timestamp()
    from accounts a
    where a.id = e.account_id
      and e.id in (${endsToNotify(tx)} limit ${BATCH} for no key update of e skip locked)
    returning
      e.id as "entitlementId",
      e.plan,
      utc_text(e.ends_at) as "endsAt",
      a.email,
      ${isAnyOnSale(tx)} as "isAnyOnSale"`;
  for (const { entitlementId, email, ...ending } of notified) {
    const dedupKey = `plan ended ${entitlementId}`;
    await queueMail(tx, { ...hasEnded(ending, site), recipient: email, dedupKey });
  }
  return notified.length;
}

function endsToRemind(sql: Queryable, hasBank: boolean) {
  const notices = noticesOf(hasBank);
  return sql`
    select e.id
    from entitlements e
    join accounts a on a.id = e.account_id
    where e.end_notified_at is null
      and e.reminded_at is null
      and e.ends_at > now()
      and e.ends_at <= now() + ${Math.max(...notices.map(({ days }) => days))} * interval '1 day'
      and e.starts_at <= now()
      and e.ends_at <= now() + (
        select notice.days
        from unnest(
          ${notices.map(({ lastsDays }) => lastsDays)}::integer[],
          ${notices.map(({ days }) => days)}::integer[]
        ) as notice (lasts_days, days)
        where e.ends_at >= e.starts_at + notice.lasts_days * interval '1 day'
        order by notice.lasts_days desc
        limit 1
      ) * interval '1 day'
      and ${isTheLast(sql)}`;
}

function endsToNotify(sql: Queryable) {
  return sql`
    select e.id
    from entitlements e
    join accounts a on a.id = e.account_id
    where e.end_notified_at is null
      and e.ends_at <= now()
      and e.ends_at > now() - ${NEWS_DAYS} * interval '1 day'
      and ${isTheLast(sql)}`;
}

function isAnyOnSale(sql: Queryable) {
  return sql`exists (select from plans where on_sale)`;
}

function isTheLast(sql: Queryable) {
  return sql`a.suspended_at is null
      and a.closed_at is null
      and not exists (
        select
        from entitlements later
        where later.account_id = e.account_id
          and (later.ends_at is null or later.ends_at > e.ends_at)
      )`;
}
