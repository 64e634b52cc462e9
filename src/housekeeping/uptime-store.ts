import type { Queryable, Sql, Transaction } from "../db/client.ts";
import { findLatePolls } from "../houses/polling/polling-store.ts";
import { UPTIME_KEPT_DAYS, UPTIME_MINUTES_KEPT_DAYS } from "./limits.ts";

/** Components that report by minute; houses are measured by their polls. */
const REPORTING = ["api", "polling", "scheduling", "parsing"] as const;

/** Payloads are parsed within seconds of their arrival; from this age on, parsing is behind. */
const UNREAD_LATE_SECONDS = 60;

/**
 * Notes that scheduling works in this minute; polling too unless every house that is due is late; and parsing unless a
 * payload waits for more than a minute. One with an error is of a damaged table: it waits for a repair.
 */
export async function noteWorkUptime(sql: Queryable): Promise<void> {
  const { late, due } = await findLatePolls(sql);
  const working = due > 0 && late.length === due ? ["scheduling", "parsing"] : ["scheduling", "parsing", "polling"];
  await sql`
    insert into uptime_minutes (component, minute)
    select component, date_trunc('minute', clock_timestamp())
    from unnest(${working}::text[]) component
    where component <> 'parsing'
      or not exists (
        select
        from payloads
        where state = 'unread'
          and error is null
          and received_at < clock_timestamp() - ${UNREAD_LATE_SECONDS} * interval '1 second'
      )
    on conflict do nothing`;
}

/**
 * Sums the polls of each house, and the minutes in which the other components reported, by day (UTC): to today from the day
 * before the newest one that any of them worked on, so that an outage of whole days is counted. Idempotent: a day is replaced by
 * its newest sums. Days that the status page no longer shows are deleted, unless the clock may be ahead.
 * @returns how many days of components were written
 */
export async function rollUpUptime(sql: Sql): Promise<number> {
  return sql.begin(async (tx) => {
    const [newest] = await tx<{ day: string }[]>`
      select (coalesce(max(day), (now() at time zone 'UTC')::date) - 1)::text as day
      from uptime_days
      where component = any(${[...REPORTING]}::text[])
        and day <= (now() at time zone 'UTC')::date
        and good > 0 -- a clock that was ahead leaves days without work`;
    if (newest === undefined) throw new Error("expected the day from which to sum, got none");
    const written = (await sumPolls(tx, newest.day)) + (await sumMinutes(tx, newest.day));
    await tx`
      delete from uptime_days
      where day < (now() at time zone 'UTC')::date - ${UPTIME_KEPT_DAYS}::integer
        and worked_lately()`;
    await tx`
      delete from uptime_minutes
      where minute < least(
          now() - ${UPTIME_MINUTES_KEPT_DAYS} * interval '1 day',
          ${newest.day}::timestamp at time zone 'UTC'
        )
        and worked_lately()`;
    return written;
  });
}

async function sumPolls(tx: Transaction, from: string): Promise<number> {
  const rows = await tx`
    insert into uptime_days (component, day, good, total)
    select 'house:' || house_id, (minute at time zone 'UTC')::date, sum(good), sum(total)
    from polls
    cross join lateral (
      select coalesce(sum(value::bigint) filter (where key ~ '^(2..|304|absent)$'), 0) as good, sum(value::bigint) as total
      from jsonb_each_text(statuses)
    ) counted
    where minute >= ${from}::timestamp at time zone 'UTC'
      and total > 0
    group by 1, 2
    on conflict (component, day) do update set good = excluded.good, total = excluded.total
    returning day`;
  return rows.length;
}

async function sumMinutes(tx: Transaction, from: string): Promise<number> {
  const rows = await tx`
    insert into uptime_days (component, day, good, total)
    select component, (starts_at at time zone 'UTC')::date, good, greatest(good, minutes)
    from (
      select
        c.component,
        d.starts_at,
        count(m.minute) as good,
        (extract(epoch from least(now(), d.starts_at + interval '1 day') - greatest(d.starts_at, c.since)) / 60)::bigint
          as minutes
      from (
        select
          component,
          case
            when exists (
              select
              from uptime_days u
              where u.component = r.component
                and u.day < ${from}::date
            ) then '-infinity'
            else (select min(minute) from uptime_minutes u where u.component = r.component)
          end as since
        from unnest(${[...REPORTING]}::text[]) as r (component)
      ) c
      cross join generate_series(${from}::timestamp at time zone 'UTC', now(), '1 day') as d (starts_at)
      left join uptime_minutes m on m.component = c.component
        and m.minute >= d.starts_at
        and m.minute < d.starts_at + interval '1 day'
      where c.since < least(now(), d.starts_at + interval '1 day')
      group by c.component, c.since, d.starts_at
    ) reported
    where greatest(good, minutes) > 0
    on conflict (component, day) do update set good = excluded.good, total = excluded.total
    returning day`;
  return rows.length;
}
