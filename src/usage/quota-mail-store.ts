import { currentPlan } from "../callers/current-plan-store.ts";
import type { Queryable, Sql, Transaction } from "../db/client.ts";
import { queueMail } from "../mail/outbox-store.ts";
import { type NearLimit, quotaLetter } from "./quota-mail.ts";

/** Mails of one transaction. */
const BATCH = 100;

interface ToNotify extends NearLimit {
  email: string;
  dedupKey: string;
}

/** Whether a holder is to be notified that 80 % or 100 % of a limit is used. */
export async function hasQuotasToNotify(sql: Queryable): Promise<boolean> {
  const rows = await sql`
    ${nearLimit(sql)}
    limit 1`;
  return rows.length > 0;
}

/**
 * Notifies holders by mail once per limit at 80 % and once at 100 %: of a day's limit once a day, of a month's once a
 * month, and again under another limit. Accounts that turned these mails off, or are suspended or closed, get none. Gives the number of mails.
 */
export async function notifyQuotas(
  sql: Sql,
  { site, signal }: { site: string | null; signal: AbortSignal },
): Promise<number> {
  let total = 0;
  for (let queued = BATCH; queued === BATCH; total += queued) {
    signal.throwIfAborted();
    queued = await sql.begin((tx) => notifyBatch(tx, site));
  }
  return total;
}

async function notifyBatch(tx: Transaction, site: string | null): Promise<number> {
  const found = await tx<ToNotify[]>`
    ${nearLimit(tx)}
    order by q.account_id
    limit ${BATCH}`;
  for (const { email, dedupKey, ...limit } of found) {
    await queueMail(tx, { ...quotaLetter(limit, site), recipient: email, dedupKey });
  }
  return found.length;
}

function nearLimit(sql: Queryable) {
  return sql`
    select
      a.email,
      p.name as plan,
      case when length(q.period) = 10 then 'day' else 'month' end as period,
      q.used,
      allowed.calls as "limit",
      last.ends_at is not null and exists (
        select
        from plans larger
        where larger.on_sale
          and larger.position > p.position
          and larger.name <> last.plan -- that one is renewed from its end on
          and coalesce(case when length(q.period) = 10 then larger.day_limit else larger.month_limit end > allowed.calls, true)
      ) as "canUpgrade",
      mail.dedup_key as "dedupKey"
    from quotas q
    join accounts a on a.id = q.account_id
    ${currentPlan(sql)}
    join plans p on p.name = current.plan
    cross join lateral (
      select plan, ends_at
      from entitlements
      where account_id = a.id
      order by starts_at desc
      limit 1
    ) last
    cross join lateral (
      select case when length(q.period) = 10 then p.day_limit else p.month_limit end as calls
    ) allowed
    cross join lateral (
      select
        'quota ' || a.id || ' ' || q.period || ' ' || allowed.calls
          || case when q.used >= allowed.calls then ' 100' else ' 80' end as dedup_key
    ) mail
    where q.period in (
        to_char(now() at time zone 'UTC', 'YYYY-MM-DD'),
        to_char(now() at time zone 'UTC', 'YYYY-MM')
      )
      and q.used * 100 >= allowed.calls * 80
      and a.quota_mails
      and a.suspended_at is null
      and a.closed_at is null
      and not exists (
        select
        from mails m
        where m.dedup_key = mail.dedup_key
      )`;
}
