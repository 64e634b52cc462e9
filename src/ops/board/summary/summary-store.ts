import type { Queryable } from "../../../db/client.ts";

/** What waits to be done, by this process or by staff. */
export interface Waiting {
  /** Age of the oldest response that was not parsed yet, other than those of damaged tables, in seconds; null if all were. */
  backlogSeconds: number | null;
  /** Bank transfers and reversals that staff have to decide. */
  transfers: number;
  reversals: number;
}

/** Reads what waits, by partial indexes of what is open. */
export async function readWaiting(sql: Queryable): Promise<Waiting> {
  const [row] = await sql<Waiting[]>`
    select
      (
        select extract(epoch from clock_timestamp() - min(received_at))::float8
        from payloads
        where state = 'unread'
          and error is null
      ) as "backlogSeconds",
      (
        select count(*)::integer
        from bank_lines
        where state in ('new', 'matched', 'suspense', 'rejected')
      ) as transfers,
      (select count(*)::integer from reversal_proposals where state = 'proposed') as reversals`;
  if (row === undefined) throw new Error("a count gave no row");
  return row;
}
