import type { Sql } from "../db/client.ts";
import { UPTIME_KEPT_DAYS } from "./limits.ts";

/**
 * Sums the polls of today and yesterday (UTC) by house, and the minutes in which any house was polled. Idempotent: a day
 * is replaced by its newest sums. Days that the status page no longer shows are deleted.
 * @returns how many days of components were written
 */
export async function rollUpUptime(sql: Sql): Promise<number> {
  return sql.begin(async (tx) => {
    const rows = await tx`
      insert into uptime_days (component, day, good, total)
      select 'house:' || house_id, (minute at time zone 'UTC')::date, sum(good), sum(total)
      from polls
      cross join lateral (
        select coalesce(sum(value::bigint) filter (where key ~ '^(2..|304)$'), 0) as good, sum(value::bigint) as total
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
    await tx`delete from uptime_days where day < (now() at time zone 'UTC')::date - ${UPTIME_KEPT_DAYS}::integer`;
    return rows.length;
  });
}
