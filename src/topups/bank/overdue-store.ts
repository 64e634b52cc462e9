import type { Queryable } from "../../db/client.ts";

/** Hours after which an alert opens for a transfer that needs a second person. */
const HOURS = 24;

/** Returns the number of overdue matches and returns that need a second person, and since when the oldest does. */
export async function countOverdue(sql: Queryable): Promise<{ count: number; since: Date | null }> {
  const [overdue] = await sql<{ count: number; since: Date | null }[]>`
    select count(*)::integer as count, min(waits_since) as since
    from (
      select matched_at as waits_since
      from bank_matches
      where ended_at is null
        and approved_at is null
      union all
      select asked_at
      from bank_returns
      where ended_at is null
        and approved_at is null
    ) waiting
    where waits_since < clock_timestamp() - make_interval(hours => ${HOURS})`;
  return overdue ?? { count: 0, since: null };
}
