import type { Queryable } from "../db/client.ts";

/** The state of a mail. `printed`: written to the terminal, since no mail server was set, and not sent. */
export type MailState = "pending" | "printed" | "sent" | "given-up";

/** A mail as operators look at it: all but its text. */
export interface ListedMail {
  id: bigint;
  kind: string;
  state: MailState;
  recipient: string;
  subject: string;
  createdAt: string;
  attempts: number;
  /** When it is tried next; null for one that is not. */
  nextTryAt: string | null;
  /** When it was sent or given up. */
  endedAt: string | null;
  lastError: string | null;
}

/** Which mails: `null` and empty are all. `recipient` is an address or a part of one. */
export interface MailFilter {
  state: MailState | null;
  recipient: string;
  kind: string;
}

/** Mails, newest first unless `oldestFirst`, after the one with this id. */
export async function listMails(
  sql: Queryable,
  { state, recipient, kind }: MailFilter,
  { after, oldestFirst, limit }: { after: bigint | null; oldestFirst: boolean; limit: number },
): Promise<ListedMail[]> {
  const direction = oldestFirst ? sql`asc` : sql`desc`;
  const isBeyond = oldestFirst ? sql`id > ${after}` : sql`id < ${after}`;
  return sql<ListedMail[]>`
    select ${columnsOf(sql)}
    from mails
    where ${after === null ? sql`true` : isBeyond}
      and ${state === null ? sql`true` : isInState(sql, state)}
      and (${recipient} = '' or strpos(lower(recipient), lower(${recipient})) > 0)
      and (${kind} = '' or kind = ${kind})
    order by id ${direction}
    limit ${limit}`;
}

/** One mail; null if there is none, or no longer. */
export async function findMail(sql: Queryable, id: bigint): Promise<ListedMail | null> {
  const [mail] = await sql<ListedMail[]>`
    select ${columnsOf(sql)}
    from mails
    where id = ${id}`;
  return mail ?? null;
}

/** Counts mails that are pending (not those that were printed), and mails that were given up. */
export async function countMails(sql: Queryable): Promise<{ pending: number; givenUp: number }> {
  const [counts] = await sql<{ pending: number; givenUp: number }[]>`
    select
      (
        select count(*)::integer from mails where sent_at is null and given_up_at is null and printed_at is null
      ) as pending,
      (select count(*)::integer from mails where given_up_at is not null) as "givenUp"`;
  return counts ?? { pending: 0, givenUp: 0 };
}

/**
 * The text of a mail that was never tried; null for every other, and for all once any mail was tried. With a mail server a text
 * is for its recipient only: it may contain a link that grants access.
 */
export async function findUntouchedText(
  sql: Queryable,
  id: bigint,
): Promise<{ recipient: string; body: string; sealed: Buffer | null } | null> {
  const [mail] = await sql<{ recipient: string; body: string; sealed: Buffer | null }[]>`
    select recipient, body, sealed
    from mails
    where id = ${id}
      and sent_at is null
      and given_up_at is null
      and last_error is null`;
  return mail === undefined || (await wasMailTried(sql)) ? null : mail;
}

/** Whether any mail that is still listed was ever tried, by any process. */
export async function wasMailTried(sql: Queryable): Promise<boolean> {
  const rows = await sql`
    select
    where exists (select from mails where attempts > 0 or sent_at is not null)`;
  return rows.length > 0;
}

/** The failure of the mail server; null while it takes mails, as far as is known. */
export async function findSendFailure(
  sql: Queryable,
): Promise<{ since: string; nextTryAt: string; reason: string } | null> {
  const [failure] = await sql<{ since: string; nextTryAt: string; reason: string }[]>`
    select utc_text(since) as since, utc_text(next_try_at) as "nextTryAt", reason
    from mail_failures`;
  return failure ?? null;
}

/**
 * Retries mails that were given up, from the first attempt; `null` is all of them, up to the limit. Returns their ids.
 */
export async function retryMails(sql: Queryable, ids: readonly bigint[] | null, limit: number): Promise<bigint[]> {
  const rows = await sql<{ id: bigint }[]>`
    update mails
    set
      given_up_at = null,
      is_refused = false,
      attempts = 0,
      asked_at = clock_timestamp(),
      next_try_at = clock_timestamp()
    where id in (
      select id
      from mails
      where given_up_at is not null
        and ${ids === null ? sql`true` : sql`id = any(${ids.map(String)}::bigint[])`}
      order by id
      limit ${limit}
      for update skip locked
    )
    returning id`;
  return rows.map(({ id }) => id).toSorted((a, b) => (a < b ? -1 : 1));
}

function isInState(sql: Queryable, state: MailState) {
  if (state === "sent") return sql`sent_at is not null`;
  if (state === "given-up") return sql`given_up_at is not null`;
  const isPrinted = state === "printed" ? sql`printed_at is not null` : sql`printed_at is null`;
  return sql`sent_at is null and given_up_at is null and ${isPrinted}`;
}

function columnsOf(sql: Queryable) {
  return sql`
    id,
    kind,
    case
      when sent_at is not null then 'sent'
      when given_up_at is not null then 'given-up'
      when printed_at is not null then 'printed'
      else 'pending'
    end as state,
    recipient,
    subject,
    utc_text(created_at) as "createdAt",
    attempts,
    case when sent_at is null and given_up_at is null then utc_text(next_try_at) end as "nextTryAt",
    utc_text(coalesce(sent_at, given_up_at)) as "endedAt",
    last_error as "lastError"`;
}
