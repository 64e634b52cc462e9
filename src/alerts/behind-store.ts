import type { Queryable } from "../db/client.ts";

/** Reading a response takes milliseconds; one that is unread for longer is stuck. */
const UNREAD_SECONDS = 20;
/** The log is signed every ten seconds. */
const UNSIGNED_SECONDS = 20;
/** Unread responses that are counted per house: a larger number would change no decision. */
const MOST_COUNTED = 1_000;

/**
 * Lists houses whose responses are stored but not read, the oldest first: for the alert "backlog". Payloads with an error
 * are left out: most are of damaged tables, which have an alert of their own, and a failed pass is tried again.
 *
 * Each table is searched by its own index, so that many payloads of one house hide no other; none is if the oldest payload
 * of all is new.
 */
export async function findUnreadBacklog(sql: Queryable): Promise<{ subject: string; text: string }[]> {
  const rows = await sql<{ house: string; n: number; since: string }[]>`
    with late as materialized (
      select t.house_id, min(first.received_at) as since, array_agg(t.id) as tables
      from tables t
      cross join lateral (
        select p.received_at
        from payloads p
        where p.table_id = t.id
          and p.state = 'unread'
          and p.error is null
        order by p.requested_at
        limit 1
      ) first
      where (
          -- no exists: it would be planned as a scan of all payloads
          select min(received_at)
          from payloads
          where state = 'unread'
            and error is null
        ) < clock_timestamp() - ${UNREAD_SECONDS} * interval '1 second'
      group by t.house_id
      having min(first.received_at) < clock_timestamp() - ${UNREAD_SECONDS} * interval '1 second'
    )
    select
      late.house_id as house,
      counted.n,
      to_char(late.since at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') as since
    from late
    cross join lateral (
      select count(*)::integer as n
      from (
        select
        from unnest(late.tables) t (id)
        cross join lateral (
          select
          from payloads p
          where p.table_id = t.id
            and p.state = 'unread'
            and p.error is null
          order by p.requested_at
          limit ${MOST_COUNTED}
        ) unread
        limit ${MOST_COUNTED}
      ) unread
    ) counted
    order by late.since, late.house_id`;
  return rows.map(({ house, n, since }) => ({
    subject: house,
    text: `${n === MOST_COUNTED ? "at least " : ""}${n} responses of ${house} are not read since ${since} UTC; see whether the queue normalize-rounds is paused or fails`,
  }));
}

/** Finds tables that changed and that no statement of the transparency log covers yet: for the alert "log_behind". */
export async function findLogBehind(sql: Queryable): Promise<{ subject: string; text: string }[]> {
  const [row] = await sql<{ n: number; since: string | null }[]>`
    select
      count(*)::integer as n,
      to_char(min(h.changed_at) at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') as since
    from table_heads h
    left join log_heads l on l.log_id = (select max(id) from logs) and l.table_id = h.table_id
    where l.version is distinct from h.version
      and (h.last_seq > 0 or h.forecast_seq > 0)
      and h.changed_at < clock_timestamp() - ${UNSIGNED_SECONDS} * interval '1 second'`;
  if (row === undefined || row.n === 0) return [];
  const text = `${row.n} tables changed since ${row.since} UTC and are not in the transparency log; see whether the queue publish-log is paused or fails`;
  return [{ subject: "log", text }];
}
