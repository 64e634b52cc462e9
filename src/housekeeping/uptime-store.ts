import type { Queryable, Sql, Transaction } from "../db/client.ts";
import { UPTIME_KEPT_DAYS, UPTIME_MINUTES_KEPT_DAYS } from "./limits.ts";

/** Components that report by minute; polling and houses are measured by their polls. */
const REPORTING = ["api", "scheduling", "parsing"] as const;

/** Payloads are parsed within seconds of their arrival; from this age on, parsing is behind. */
const UNREAD_LATE_SECONDS = 60;

/**
 * Notes that scheduling works in this minute, and parsing too unless a payload waits for more than a minute. One with an
 * error is of a damaged table: it waits for a repair.
 */
export async function noteWorkUptime(sql: Queryable): Promise<void> {
  await sql`
    insert into uptime_minutes (component, minute)
    select component, date_trunc('minute', clock_timestamp())
    from unnest(array['scheduling', 'parsing']) component
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
 * Sums today and yesterday (UTC): the polls of each house, the minutes in which any house was polled, and those in which
 * the API, scheduling and parsing reported. Idempotent: a day is replaced by its newest sums. Days that the status page no
 * longer shows are deleted, unless the clock may be ahead.
 * @returns how many days of components were written
 */
export async function rollUpUptime(sql: Sql): Promise<number> {
  return sql.begin(async (tx) => {
    const written = (await sumPolls(tx)) + (await sumMinutes(tx));
    await tx`
      delete from uptime_days
      where day < (now() at time zone 'UTC')::date - ${UPTIME_KEPT_DAYS}::integer
        and worked_lately()`;
    await tx`
      delete from uptime_minutes
      where minute < now() - ${UPTIME_MINUTES_KEPT_DAYS} * interval '1 day'
        and worked_lately()`;
    return written;
  });
}

async function sumPolls(tx: Transaction): Promise<number> {
  const rows = await tx`
    insert into uptime_days (component, day, good, total)
    select 'house:' || house_id, (minute at time zone 'UTC')::date, sum(good), sum(total)
    from polls
    cross join lateral (
      select coalesce(sum(value::bigint) filter (where key ~ '^(2..|304|absent)$'), 0) as good, sum(value::bigint) as total
      from jsonb_each_text(statuses)
    ) counted
    where minute >= date_trunc('day', now(), 'UTC') - interval '1 day'
      and total > 0
    group by 1, 2
    union all
    select 'polling', day, count(*), greatest(count(*), case
      when day = (now() at time zone 'UTC')::date then extract(epoch from now() - max(first_minute)) / 60
      else extract(epoch from (day + 1)::timestamp at time zone 'UTC' - max(first_minute)) / 60
    end::bigint)
    from (
      select distinct minute, (minute at time zone 'UTC')::date as day
      from polls
      where minute >= date_trunc('day', now(), 'UTC') - interval '1 day'
    ) minutes
    cross join lateral (
      -- an instance that was started today is not blamed for the hours before
      select greatest(day::timestamp at time zone 'UTC', (select min(created_at) from houses)) as first_minute
    ) began
    group by day
    on conflict (component, day) do update set good = excluded.good, total = excluded.total
    returning day`;
  return rows.length;
}

async function sumMinutes(tx: Transaction): Promise<number> {
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
                and u.day < (now() at time zone 'UTC')::date - 1
            ) then '-infinity'
            else (select min(minute) from uptime_minutes u where u.component = r.component)
          end as since
        from unnest(${[...REPORTING]}::text[]) as r (component)
      ) c
      cross join (
        values (date_trunc('day', now(), 'UTC') - interval '1 day'), (date_trunc('day', now(), 'UTC'))
      ) as d (starts_at)
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
