import type { Queryable } from "../../db/client.ts";

/** Polls of a house in a span of time. */
export interface PollSums {
  house: string;
  requests: number;
  bytes: number;
  /** Responses within each bound of the histogram, and slower ones. */
  latency: number[];
}

/** Polls of a house in a cell of some minutes, by status. */
export interface StatusCell {
  house: string;
  at: Date;
  requests: number;
  bytes: number;
  /** Requests by status code; 0 = no response, absent = the 404 of a round that was not played yet. */
  statuses: Record<string, number>;
}

/** Sums of the last hour of these houses, or of all (null). */
export async function sumPolls(sql: Queryable, houses: readonly string[] | null): Promise<PollSums[]> {
  const of = houses === null ? null : [...houses];
  return sql<PollSums[]>`
    select
      house_id as house,
      sum(requests)::float8 as requests,
      sum(bytes)::float8 as bytes,
      array[
        sum(latency_ms[1]), sum(latency_ms[2]), sum(latency_ms[3]), sum(latency_ms[4]), sum(latency_ms[5]),
        sum(latency_ms[6]), sum(latency_ms[7]), sum(latency_ms[8]), sum(latency_ms[9]), sum(latency_ms[10])
      ]::float8[] as latency
    from polls
    where minute > now() - interval '1 hour'
      and (${of}::text[] is null or house_id = any(${of}::text[]))
    group by house_id`;
}

/** Statuses of the last hours in cells of so many minutes, oldest first. */
export async function listStatuses(
  sql: Queryable,
  houses: readonly string[],
  { hours, cellMinutes }: { hours: number; cellMinutes: number },
): Promise<StatusCell[]> {
  return sql<StatusCell[]>`
    with chosen as (
      select house_id as house, date_bin(${cellMinutes} * interval '1 minute', minute, 'epoch') as at, requests, bytes, statuses
      from polls
      where minute > now() - ${hours} * interval '1 hour'
        and house_id = any(${[...houses]}::text[])
    ),
    codes as (
      select house, at, jsonb_object_agg(status, n) as statuses
      from (
        select house, at, s.key as status, sum(s.value::bigint) as n
        from chosen
        cross join lateral jsonb_each_text(statuses) s
        group by house, at, s.key
      ) by_code
      group by house, at
    ),
    cells as (
      select house, at, sum(requests)::float8 as requests, sum(bytes)::float8 as bytes
      from chosen
      group by house, at
    )
    select c.house, c.at, c.requests, c.bytes, coalesce(s.statuses, '{}') as statuses
    from cells c
    left join codes s on s.house = c.house and s.at = c.at
    order by c.house, c.at`;
}
