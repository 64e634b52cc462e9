import type { Queryable } from "../db/client.ts";

/** Calls of an account on a UTC day, with one key, to one endpoint. */
export interface KeyDay {
  date: string;
  keyId: bigint;
  keyName: string;
  last4: string;
  endpoint: string;
  requests: bigint;
}

/**
 * What an account called on each of the last `days` UTC days by key and endpoint, newest day first. Today is read from the
 * meter itself, so it is exact; the days before come from the rollups, which follow within a minute.
 */
export async function listKeyDays(sql: Queryable, accountId: bigint, days: number): Promise<KeyDay[]> {
  return sql<KeyDay[]>`
    with counted as (
      select starts_at as day, key_id, endpoint, n
      from usage_rollups
      where account_id = ${accountId}
        and grain = 'day'
        and starts_at > date_trunc('day', now(), 'UTC') - ${days} * interval '1 day'
        and starts_at < date_trunc('day', now(), 'UTC')
      union all
      select date_trunc('day', now(), 'UTC'), key_id, endpoint, n
      from usage_facts
      where account_id = ${accountId}
        and minute >= date_trunc('day', now(), 'UTC')
    )
    select
      to_char(c.day at time zone 'UTC', 'YYYY-MM-DD') as date,
      k.id as "keyId",
      k.name as "keyName",
      k.last4,
      c.endpoint,
      sum(c.n)::bigint as requests
    from counted c
    join keys k on k.id = c.key_id
    where k.account_id = ${accountId}
    group by c.day, k.id, k.name, k.last4, c.endpoint
    order by c.day desc, 6 desc, k.id, c.endpoint`;
}
