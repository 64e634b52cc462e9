import type { Queryable } from "../db/client.ts";

/** Without a poll for three intervals, three requests of its budget, and this long, a house counts as not asked any more. */
const PATIENCE_SECONDS = 30;

/**
 * Is polling going on? True where any house that is due was asked lately, by whichever worker, and where none is due:
 * disabled and paused houses are not, nor those that must wait after a failure.
 */
export async function isPolling(sql: Queryable): Promise<boolean> {
  const [row] = await sql<{ due: number; asked: number }[]>`
    select
      count(*) filter (where l.next_allowed_at <= clock_timestamp())::integer as due,
      count(*) filter (
        where l.last_poll_at > clock_timestamp()
          - greatest(
            3 * h.poll_every_ms * interval '1 millisecond',
            3 * interval '1 minute' / (h.settings ->> 'requests_per_minute')::integer,
            ${PATIENCE_SECONDS} * interval '1 second'
          )
      )::integer as asked
    from houses h
    join poll_leases l on l.house_id = h.id
    where h.enabled
      and h.paused_at is null
      and h.base_url is not null
      and exists (
        select
        from tables t
        where t.house_id = l.house_id
          and t.shard = l.shard
          and t.enabled
      )`;
  return row !== undefined && (row.asked > 0 || row.due === 0);
}
