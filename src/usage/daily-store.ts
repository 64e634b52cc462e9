import type { Queryable } from "../db/client.ts";

/** Calls of an account on a UTC day, to one endpoint, as rolled up. */
export interface EndpointDay {
  date: string;
  endpoint: string;
  requests: bigint;
}

/** What an account called on each of the last `days` UTC days, newest day first; days come from the rollups, a minute old. */
export async function listEndpointDays(sql: Queryable, accountId: bigint, days: number): Promise<EndpointDay[]> {
  return sql<EndpointDay[]>`
    select
      to_char(starts_at at time zone 'UTC', 'YYYY-MM-DD') as date,
      endpoint,
      sum(n)::bigint as requests
    from usage_rollups
    where account_id = ${accountId}
      and grain = 'day'
      and starts_at > date_trunc('day', now(), 'UTC') - ${days} * interval '1 day'
    group by 1, 2
    order by 1 desc, 3 desc, 2`;
}
