import type { Queryable } from "../db/client.ts";
import { atMicros } from "./state-store.ts";
import type { UsedLimit } from "./used-limit.ts";

/**
 * Returns the limit of a plan that the account's calls of the running day or month already reach, if the plan starts
 * before that period ends; null if there is none. The month comes first, because it lasts longer.
 */
export async function readUsedLimit(
  sql: Queryable,
  { accountId, plan, startsAt }: { accountId: bigint; plan: string; startsAt: bigint | null },
): Promise<UsedLimit | null> {
  const [found] = await sql<UsedLimit[]>`
    select p.name as plan, one.period, q.used, one.calls as "limit", utc_text(one.resets_at) as "resetsAt"
    from plans p
    cross join lateral (
      values
        (
          'month', to_char(now() at time zone 'UTC', 'YYYY-MM'), p.month_limit,
          date_trunc('month', now(), 'UTC') + interval '1 month'
        ),
        (
          'day', to_char(now() at time zone 'UTC', 'YYYY-MM-DD'), p.day_limit,
          date_trunc('day', now(), 'UTC') + interval '1 day'
        )
    ) as one (period, counted_as, calls, resets_at)
    join quotas q on q.account_id = ${accountId} and q.period = one.counted_as
    where p.name = ${plan}
      and q.used >= one.calls
      and ${startsAt === null ? sql`now()` : atMicros(sql, startsAt)} < one.resets_at
    order by one.period desc
    limit 1`;
  return found ?? null;
}
