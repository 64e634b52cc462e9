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

/** The calls of an account on each of the last `days` UTC days by key and endpoint, newest day first; exact, today included. */
export async function listKeyDays(sql: Queryable, accountId: bigint, days: number): Promise<KeyDay[]> {
  return sql<KeyDay[]>`
    select
      to_char(c.day, 'YYYY-MM-DD') as date,
      k.id as "keyId",
      k.name as "keyName",
      k.last4,
      c.endpoint,
      c.n as requests
    from usage_counts c
    join keys k on k.id = c.key_id
    where c.account_id = ${accountId}
      and c.day > (now() at time zone 'UTC')::date - ${days}::integer
    order by c.day desc, c.n desc, k.id, c.endpoint`;
}
