import type { Queryable } from "../db/client.ts";

/** Joins `current`, the plan that an account `a` has now and its end; null if it has none. */
export function currentPlan(sql: Queryable) {
  return sql`
    left join lateral (
      select plan, ends_at
      from entitlements
      where account_id = a.id
        and starts_at <= now()
        and (ends_at is null or ends_at > now())
      order by starts_at desc
      limit 1
    ) current on true`;
}
