import type { Queryable } from "../db/client.ts";

/** A mail that is printed rather than sent. */
export interface PrintedMail {
  recipient: string;
  subject: string;
  body: string;
  /** The link that the body has a placeholder for, encrypted. */
  sealed: Buffer | null;
}

/** In one look; the next one comes a second later. */
const MOST_AT_ONCE = 20;

/** Takes the mails of the last hour that wait and were never printed, oldest first; each is given once. */
export async function takeMailsToPrint(sql: Queryable): Promise<PrintedMail[]> {
  const rows = await sql<(PrintedMail & { id: bigint })[]>`
    update mails
    set printed_at = clock_timestamp()
    where id in (
      select id
      from mails
      where sent_at is null
        and given_up_at is null
        and printed_at is null
        and created_at > clock_timestamp() - interval '1 hour'
      order by id
      limit ${MOST_AT_ONCE}
      for update skip locked
    )
    returning id, recipient, subject, body, sealed`;
  return rows
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ recipient, subject, body, sealed }) => ({ recipient, subject, body, sealed }));
}
