import type { Queryable } from "../db/client.ts";

/**
 * Houses that are polled and return no round: for the alert "house offline".
 *
 * A house is one if it was polled at least `liveWindowSeconds` after its newest polled round (or after it was added,
 * changed or resumed, whichever is later) and none of its payloads waits to be read. Its polls decide and not the clock,
 * so that a stop of our own is never reported as a fault of the house. A damaged table keeps its payloads unread with an
 * error, each only if it differs from the one before: within `liveWindowSeconds` of the newest poll they suggest that
 * the house returns rounds, later the other tables decide.
 */
export async function findOfflineHouses(
  sql: Queryable,
  liveWindowSeconds: number,
): Promise<{ subject: string; text: string }[]> {
  const rows = await sql<OfflineHouse[]>`
    select
      h.id as house,
      to_char(newest.round_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') as round_at,
      latest.last_status,
      case when latest.last_error_at = latest.last_poll_at then latest.last_error end as last_error,
      to_char(polled.next at time zone 'UTC', 'HH24:MI:SS') as next
    from houses h
    cross join lateral (
      select max(d.last_polled_round_at) as round_at
      from tables t
      join table_heads d on d.table_id = t.id
      where t.house_id = h.id
    ) newest
    cross join lateral (
      select
        max(last_poll_at) as poll_at,
        min(greatest(next_allowed_at, clock_timestamp() + h.poll_every_ms * interval '1 millisecond')) as next
      from poll_leases
      where house_id = h.id
    ) polled
    cross join lateral (
      select last_status, last_error, last_error_at, last_poll_at
      from poll_leases
      where house_id = h.id
        and last_poll_at is not null
      order by last_poll_at desc
      limit 1
    ) latest
    where h.enabled
      and h.paused_at is null
      and polled.poll_at >= greatest(newest.round_at, h.created_at, h.updated_at)
        + ${liveWindowSeconds} * interval '1 second'
      and exists (
        select
        from tables t
        where t.house_id = h.id
          and t.enabled
          and t.id not in (select table_id from payloads where state = 'unread' and error is not null)
      )
      and not exists (
        select
        from tables t
        join payloads p on p.table_id = t.id
        where t.house_id = h.id
          and p.state = 'unread'
          and (p.error is null or p.received_at > polled.poll_at - ${liveWindowSeconds} * interval '1 second')
      )
    order by h.id`;
  return rows.map((row) => ({ subject: row.house, text: offlineText(row) }));
}

interface OfflineHouse {
  house: string;
  round_at: string | null;
  last_status: number;
  last_error: string | null;
  next: string;
}

function offlineText({ house, round_at, last_status, last_error, next }: OfflineHouse): string {
  const since = round_at === null ? "has not returned a round yet" : `has returned no round since ${round_at} UTC`;
  const status = last_status === 0 ? "got no response" : `got the status ${last_status}`;
  const error = last_error === null ? "" : ` (${last_error})`;
  return `the house ${house} ${since}; its newest poll ${status}${error}; the next poll is at ${next} UTC`;
}

/** A single broken response opens a notice; only a longer failure alerts operators. */
const UNREADABLE_FOR_SECONDS = 60;

/** Tables whose responses arrive and cannot be read, and why: for the alert "responses unreadable". */
export async function findUnreadableTables(sql: Queryable): Promise<{ subject: string; text: string }[]> {
  const rows = await sql<{ name: string; since: string; reason: string | null; notice: string }[]>`
    select
      t.house_id || '/' || t.game || '/' || t.market as name,
      to_char(n.opened_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') as since,
      newest.refused_reason as reason,
      n.text as notice
    from notices n
    join tables t on t.id = n.table_id
    join houses h on h.id = t.house_id
    left join lateral (
      select refused_reason
      from payloads
      where table_id = t.id
        and state = 'refused'
        and received_at >= n.opened_at
      order by received_at desc
      limit 1
    ) newest on true
    where n.kind = 'format'
      and n.closed_at is null
      and n.opened_at < clock_timestamp() - ${UNREADABLE_FOR_SECONDS} * interval '1 second'
      and t.enabled
      and h.enabled
      and h.paused_at is null
    order by t.id`;
  return rows.map(({ name, since, reason, notice }) => ({
    subject: name,
    text:
      reason === null ? `${name}: ${notice}` : `the responses of ${name} cannot be read since ${since} UTC: ${reason}`,
  }));
}
