import type { Sql } from "../db/client.ts";
import { ENDED_KEPT_DAYS } from "./limits.ts";

/** Rows of one statement: some milliseconds. */
const BATCH = 1_000;
/** Batches of one run; the next hour continues. */
const BATCHES_PER_RUN = 100;

/**
 * Forgets mails that were sent or given up 32 days ago, and gives up those that nothing has sent for as long, as where
 * there is no mail server. Gives the number of mails forgotten.
 */
export async function pruneMails(sql: Sql, signal: AbortSignal): Promise<number> {
  await inBatches(signal, async () => {
    const rows = await sql`
      update mails
      set
        given_up_at = clock_timestamp(),
        last_error = coalesce(last_error, 'nothing sent it: SMTP_URL was not set')
      where id in (
        select id
        from mails
        where sent_at is null
          and given_up_at is null
          and asked_at < clock_timestamp() - ${ENDED_KEPT_DAYS} * interval '1 day'
          and next_try_at <= clock_timestamp()
        order by id
        limit ${BATCH}
        for update skip locked
      )`;
    return rows.count;
  });
  const pruned = await inBatches(signal, async () => {
    const rows = await sql`
      delete from mails
      where id in (
        select id
        from mails
        where created_at < clock_timestamp() - ${ENDED_KEPT_DAYS} * interval '1 day'
          and coalesce(sent_at, given_up_at) < clock_timestamp() - ${ENDED_KEPT_DAYS} * interval '1 day'
        order by id
        limit ${BATCH}
        for update skip locked -- a mail that is retried meanwhile stays
      )`;
    return rows.count;
  });
  await sql`
    delete from alert_mails
    where written_at < clock_timestamp() - ${ENDED_KEPT_DAYS} * interval '1 day'`;
  return pruned;
}

async function inBatches(signal: AbortSignal, batch: () => Promise<number>): Promise<number> {
  let sum = 0;
  for (let done = 0; done < BATCHES_PER_RUN; done += 1) {
    signal.throwIfAborted();
    const count = await batch();
    sum += count;
    if (count < BATCH) break;
  }
  return sum;
}
