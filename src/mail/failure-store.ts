import type { Queryable } from "../db/client.ts";
import { SERVER_RETRY } from "./limits.ts";

/**
 * Notes that the mail server takes no mail from anybody, so that nothing is tried for a while: 20 seconds, doubled with
 * each try up to ten. Returns for how many seconds it has failed.
 */
export async function saveSendFailure(sql: Queryable, reason: string): Promise<number> {
  const { firstSeconds, mostSeconds } = SERVER_RETRY;
  const [row] = await sql<{ seconds: number }[]>`
    insert into mail_failures as known (next_try_at, reason)
    values (clock_timestamp() + ${firstSeconds} * interval '1 second', ${reason})
    on conflict (is_only) do update
    set
      tries = known.tries + 1,
      next_try_at = clock_timestamp()
        + least(${firstSeconds} * 2 ^ least(known.tries, 20), ${mostSeconds}) * interval '1 second',
      reason = excluded.reason
    returning extract(epoch from clock_timestamp() - since)::float8 as seconds`;
  return row?.seconds ?? 0;
}

/** Notes that the mail server takes mails, or that none is configured. */
export async function clearSendFailure(sql: Queryable): Promise<void> {
  await sql`delete from mail_failures`;
}
