import type { Queryable } from "../db/client.ts";

/** Calls of an account on a UTC day, to one endpoint. */
export interface EndpointDay {
  date: string;
  endpoint: string;
  requests: bigint;
}

/** The calls of an account on each of the last `days` UTC days by endpoint, newest day first; exact, today included. */
export async function listEndpointDays(sql: Queryable, accountId: bigint, days: number): Promise<EndpointDay[]> {
  return sql<EndpointDay[]>`
    select to_char(day, 'YYYY-MM-DD') as date, endpoint, sum(n)::bigint as requests
    from usage_counts
    where account_id = ${accountId}
      and day > (now() at time zone 'UTC')::date - ${days}::integer
    group by day, endpoint
    order by day desc, 3 desc, endpoint`;
}
