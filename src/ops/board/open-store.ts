import type { Queryable } from "../../db/client.ts";

/** A notice that callers see now. */
export interface OpenNotice {
  tableId: number;
  kind: string;
  text: string;
  openedAt: Date;
}

/** A critical notice. */
export interface OpenAlert {
  kind: string;
  subject: string;
  text: string;
  openedAt: Date;
}

/** What a table usually brings in a minute. */
export interface Usual {
  tableId: number;
  perMinute: number;
  /** Past days whose same hour it is the mean of; 0: it is the mean of the last day. */
  days: number;
}

/** Notices that are open, of tables that are polled; of one house if given. */
export async function readNotices(sql: Queryable, house: string | null = null): Promise<OpenNotice[]> {
  return sql<OpenNotice[]>`
    select n.table_id as "tableId", n.kind, upper(left(n.text, 1)) || substr(n.text, 2) as text, n.opened_at as "openedAt"
    from notices n
    join tables t on t.id = n.table_id
    join houses h on h.id = t.house_id
    where n.closed_at is null
      and t.enabled
      and h.enabled
      and (${house}::text is null or h.id = ${house})
    order by n.opened_at`;
}

/** Critical notices that are open. */
export async function readAlerts(sql: Queryable): Promise<OpenAlert[]> {
  return sql<OpenAlert[]>`
    select kind, subject, text, opened_at as "openedAt"
    from alerts
    where closed_at is null
    order by opened_at`;
}

/**
 * What tables usually bring in a minute: the mean of this hour of the day over the past seven days or, where a table has
 * no such hour, of the last day. A table that has not been there for a whole hour has no usual. Of one house if given.
 */
export async function readUsual(sql: Queryable, house: string | null = null): Promise<Usual[]> {
  return sql<Usual[]>`
    with sums as (
      select
        c.table_id,
        c.hour < date_trunc('hour', now(), 'UTC') - interval '23 hours' and
          extract(epoch from date_trunc('hour', now(), 'UTC') - c.hour)::bigint % 86400 = 0 as is_same_hour,
        c.hour >= date_trunc('hour', now(), 'UTC') - interval '24 hours' as is_of_day,
        s.rounds,
        s.cells
      from round_cells c
      -- cells are summed a day back also for a table that was not there yet: those say nothing of it
      join tables t on t.id = c.table_id and t.created_at <= c.hour
      cross join lateral (select sum(n) as rounds, count(*) as cells from unnest(c.rounds) as cell (n)) s
      where c.hour = any(array(
        select date_trunc('hour', now(), 'UTC') - n * interval '24 hours' from generate_series(1, 7) n
        union
        select date_trunc('hour', now(), 'UTC') - n * interval '1 hour' from generate_series(0, 24) n
      ))
        and (${house}::text is null or t.house_id = ${house})
    )
    select
      table_id as "tableId",
      coalesce(
        sum(rounds) filter (where is_same_hour) / (5 * sum(cells) filter (where is_same_hour)),
        sum(rounds) filter (where is_of_day) / (5 * sum(cells) filter (where is_of_day)),
        0
      )::float8 as "perMinute",
      count(*) filter (where is_same_hour)::integer as days
    from sums
    group by table_id`;
}
