import type { Queryable } from "../db/client.ts";
import { type MailKey, sealLink, UNREADABLE_LINK } from "./seal.ts";
import {
  type Backoff,
  LEASE_SECONDS,
  PUT_OFF_ALERT_MINUTES,
  PUT_OFF_TO_ALERT,
  REFUSALS_TO_ALERT,
  TRIED_FOR_DAYS,
} from "./limits.ts";

/** A mail as a concept writes it; `letter` makes kind, subject and body. */
export interface NewMail {
  /** A word such as `verify-address`. */
  kind: string;
  /** One address, such as `someone@example.com`. */
  recipient: string;
  subject: string;
  /** Plain text, with {@link LINK} where a link that grants access belongs. */
  body: string;
  /** That link, and what it is encrypted with: only processes with AUTH_SECRET can read it. */
  link?: string;
  sealWith?: MailKey;
  /** The cause of this mail, such as `purchase 12`: written once, even if it is queued again. */
  dedupKey?: string;
}

/** A mail that a worker took to send it. */
export interface TakenMail {
  id: bigint;
  kind: string;
  recipient: string;
  subject: string;
  body: string;
  /** The link that the body has a placeholder for, encrypted. */
  sealed: Buffer | null;
  /** A UUID; the same at every try. */
  messageId: string;
  /** This try among the others, from 1. */
  attempts: number;
}

/**
 * Queues a mail for send-mail in the transaction of its cause, so that neither is stored without the other. A known
 * `dedupKey` changes nothing.
 * @throws the database's error if the recipient is no address or the subject is not one line; `letter` cleans the subject.
 */
export async function queueMail(tx: Queryable, mail: NewMail): Promise<void> {
  const { kind, recipient, subject, body, link, sealWith, dedupKey = null } = mail;
  if (link === undefined) {
    await tx`
      insert into mails (kind, recipient, subject, body, dedup_key)
      values (${kind}, ${recipient}, ${subject}, ${body}, ${dedupKey})
      on conflict (dedup_key) do nothing`;
    return;
  }
  if (sealWith === undefined) throw new Error(`a mail of the kind ${kind} has a link and no key to encrypt it with`);
  await tx`
    insert into mails (kind, recipient, subject, body, sealed, dedup_key)
    values (${kind}, ${recipient}, ${subject}, ${body}, ${sealLink(sealWith, recipient, link)}, ${dedupKey})
    on conflict (dedup_key) do nothing`;
}

/** Whether a mail could be sent now: one waits, and the mail server is not known to fail. */
export async function isMailWaiting(sql: Queryable): Promise<boolean> {
  const rows = await sql`
    select
    where exists (
        select
        from mails
        where sent_at is null
          and given_up_at is null
          and next_try_at <= clock_timestamp()
      )
      and not exists (select from mail_failures where next_try_at > clock_timestamp())`;
  return rows.length > 0;
}

/**
 * Takes the mail that is due first, with a lease of two minutes; null if none is due, or if the mail server is in backoff. If a
 * worker dies, the mail is taken again after the lease. A retried mail follows those that waited already, so that a mail at
 * which the server always disconnects does not block the others.
 */
export async function takeMail(sql: Queryable): Promise<TakenMail | null> {
  const [taken] = await sql<TakenMail[]>`
    update mails
    set attempts = attempts + 1, next_try_at = clock_timestamp() + ${LEASE_SECONDS} * interval '1 second'
    where id = (
      select id
      from mails
      where sent_at is null
        and given_up_at is null
        and next_try_at <= clock_timestamp()
        and not exists (select from mail_failures where next_try_at > clock_timestamp())
      order by next_try_at, id
      limit 1
      for update skip locked
    )
    returning id, kind, recipient, subject, body, sealed, message_id as "messageId", attempts`;
  return taken ?? null;
}

/** Stores that a mail was sent, and deletes its text. Idempotent. */
export async function finishMail(sql: Queryable, { id }: Pick<TakenMail, "id">): Promise<void> {
  await sql`
    update mails
    set sent_at = clock_timestamp(), body = null, sealed = null, given_up_at = null, is_refused = false, last_error = null
    where id = ${id}
      and sent_at is null`;
}

/** Stores why a mail was not sent, and when it is retried. Changes nothing if the lease was lost. */
export async function putOffMail(sql: Queryable, mail: TakenMail, reason: string, again: Backoff): Promise<void> {
  await sql`
    update mails
    set
      last_error = ${reason},
      next_try_at = clock_timestamp()
        + least(${again.firstSeconds} * 2 ^ least(attempts - 1, 20), ${again.mostSeconds}) * interval '1 second'
    where id = ${mail.id}
      and attempts = ${mail.attempts}
      and sent_at is null
      and given_up_at is null`;
}

/** Gives a mail up that the mail server refused permanently. */
export async function refuseMail(sql: Queryable, mail: TakenMail, reason: string): Promise<void> {
  await sql`
    update mails
    set last_error = ${reason}, given_up_at = clock_timestamp(), is_refused = true
    where id = ${mail.id}
      and attempts = ${mail.attempts}
      and sent_at is null
      and given_up_at is null`;
}

/** Gives up mails that are three days old. Returns their number. */
export async function giveUpLateMails(sql: Queryable, limit: number): Promise<number> {
  const rows = await sql`
    update mails
    set
      given_up_at = clock_timestamp(),
      last_error = coalesce(last_error, 'written when nothing sent mails, and too old now to be sent unasked')
    where id in (
      select id
      from mails
      where sent_at is null
        and given_up_at is null
        and next_try_at <= clock_timestamp()
        and asked_at <= clock_timestamp() - ${TRIED_FOR_DAYS} * interval '1 day'
      order by id
      limit ${limit}
      for update skip locked
    )`;
  return rows.count;
}

/**
 * The alert about mails that were given up in the last day without being refused; none if there are none.
 */
export async function listLateMails(sql: Queryable): Promise<{ subject: string; text: string }[]> {
  return sql<{ subject: string; text: string }[]>`
    select
      'mails' as subject,
      count(*) || ' mails could not be sent within ' || ${TRIED_FOR_DAYS}::integer
        || ' days and were given up; /ops/mails shows why, and retries them' as text
    from mails
    where given_up_at > clock_timestamp() - interval '1 day'
      and not is_refused
    having count(*) > 0`;
}

/**
 * The alert about a mail server that permanently refused all of the newest mails of the last day: most likely it takes none of
 * ours, for instance because it does not relay. None if it took one of them, or if there were fewer.
 */
export async function listRefusals(sql: Queryable): Promise<{ subject: string; text: string }[]> {
  return sql<{ subject: string; text: string }[]>`
    select
      'smtp' as subject,
      'the mail server has refused the last ' || ${REFUSALS_TO_ALERT}::integer
        || ' mails permanently: check that the account of SMTP_URL may send to any address, and MAIL_FROM; '
        || '/ops/mails shows why, and retries them' as text
    from (
      select is_refused
      from mails
      where created_at > clock_timestamp() - interval '1 day'
        and (sent_at is not null or is_refused)
      order by id desc
      limit ${REFUSALS_TO_ALERT}
    ) as ended
    having count(*) = ${REFUSALS_TO_ALERT}
      and bool_and(is_refused)`;
}

/** Mails that wait although the mail server responds. */
export interface PutOffMails {
  /** Their links are encrypted with another AUTH_SECRET; otherwise the server puts them off. */
  isUnreadable: boolean;
  mails: number;
  /** The error of the newest. */
  reason: string;
}

/**
 * Mails that were tried and still wait after 15 minutes: those that the mail server puts off, if they go to several
 * recipients and it took no later mail but ours about alerts, so that a full mailbox alone is not listed; and those whose links
 * cannot be decrypted.
 */
export async function listPutOffMails(sql: Queryable): Promise<PutOffMails[]> {
  const since = sql`clock_timestamp() - ${PUT_OFF_ALERT_MINUTES} * interval '1 minute'`;
  return sql<PutOffMails[]>`
    select "isUnreadable", count(*)::integer as mails, (array_agg(last_error order by id desc))[1] as reason
    from (
      select
        id,
        recipient,
        last_error,
        last_error = ${UNREADABLE_LINK} as "isUnreadable",
        asked_at > coalesce((select max(sent_at) from mails where kind <> 'alerts'), '-infinity') as took_none_later
      from mails
      where sent_at is null
        and given_up_at is null
        and attempts > 0
        and last_error is not null
        and asked_at < ${since}
    ) late
    where "isUnreadable"
      or took_none_later
    group by "isUnreadable"
    having "isUnreadable"
      or count(distinct recipient) >= ${PUT_OFF_TO_ALERT}
        and not exists (select from mail_failures)`;
}
