import type { Queryable } from "../../db/client.ts";
import { DEFAULT_TIMEOUT_MS } from "../settings/settings.ts";
import { BYTES_OF_TABLE } from "./day-budget.ts";
import { paceOf, RUN_MS, type Pace } from "./pace.ts";

/** A poll is late after three intervals, three requests of its house's budget, or 25 s, whichever is longest, plus its timeout. */
const PATIENCE_SECONDS = 25;

/** The delay of due polls. */
export interface Lateness {
  /** The houses whose poll is late, latest first. */
  late: string[];
  /** How many houses may be polled. */
  due: number;
  /** The longest that one poll may take, in milliseconds; 0 if no house is due. */
  longestPollMs: number;
}

/**
 * Finds houses whose polls are late. A poll is due one interval after the last one, and not before the house allows it:
 * while its circuit is open, or after a Retry-After. Disabled and paused houses are never due, and none is while the
 * queue of polls is paused; a house that was added, changed or resumed is due from then on.
 */
export async function findLatePolls(sql: Queryable): Promise<Lateness> {
  const rows = await sql<{ house: string; isLate: boolean; pollMs: number }[]>`
    select
      d.house,
      bool_or(d.due_at + d.patience + d.timeout < clock_timestamp()) as "isLate",
      extract(epoch from max(d.timeout))::float8 * 1000 as "pollMs"
    from (
      select
        h.id as house,
        greatest(
          l.last_poll_at + h.poll_every_ms * interval '1 millisecond',
          l.next_allowed_at,
          h.updated_at
        ) as due_at,
        greatest(
          3 * h.poll_every_ms * interval '1 millisecond',
          3 * interval '1 minute' / (h.settings ->> 'requests_per_minute')::integer,
          ${PATIENCE_SECONDS} * interval '1 second'
        ) as patience,
        coalesce((h.settings ->> 'timeout_ms')::integer, ${DEFAULT_TIMEOUT_MS}) * interval '1 millisecond' as timeout
      from houses h
      join poll_leases l on l.house_id = h.id
      where ${mayBePolled(sql)}
    ) d
    group by d.house
    order by min(d.due_at), d.house`;
  return {
    late: rows.filter(({ isLate }) => isLate).map(({ house }) => house),
    due: rows.length,
    longestPollMs: Math.max(0, ...rows.map(({ pollMs }) => pollMs)),
  };
}

/**
 * Lists the houses that are held until 00:00 UTC because of their bytes of the day: for the alert "not_polled". A
 * Retry-After that ends after midnight is of a house with fewer bytes. More than the limit of one table are enough, since
 * tables may be added during the hold.
 */
export async function listHeldHouses(sql: Queryable): Promise<{ subject: string; text: string }[]> {
  const rows = await sql<{ house: string; until: string; reason: string | null }[]>`
    select distinct on (h.id)
      h.id as house,
      to_char(l.next_allowed_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI') as until,
      case when l.last_error_at = l.last_poll_at then l.last_error end as reason
    from houses h
    join poll_leases l on l.house_id = h.id
    where ${isWanted(sql)}
      and l.next_allowed_at > clock_timestamp()
      and l.next_allowed_at >= date_trunc('day', clock_timestamp(), 'UTC') + interval '1 day'
      and l.bytes_on = (clock_timestamp() at time zone 'UTC')::date
      and l.bytes_today > ${BYTES_OF_TABLE}::bigint
    order by h.id, l.next_allowed_at desc`;
  return rows.map(({ house, until, reason }) => ({
    subject: house,
    text: `the house ${house} is not polled before ${until} UTC${reason === null ? "" : ` (${reason})`}`,
  }));
}

/** A house whose next poll is late by so much has no run: its worker died, or Redis lost it. */
const NO_RUN_SECONDS = 5;

/** Lists the runs of polls to start now: of houses that may be polled, but never were or are not. */
export async function listMissingRuns(sql: Queryable): Promise<{ house: string; shard: number; pace: Pace }[]> {
  const rows = await sql<{ house: string; shard: number; every: number; spread: number }[]>`
    select l.house_id as house, l.shard, h.poll_every_ms as every, spread.ms as spread
    from houses h
    join poll_leases l on l.house_id = h.id
    cross join lateral (select ${spreadOf(sql)} as ms) spread
    where ${mayBePolled(sql)}
      and l.lease_until < clock_timestamp()
      and (
        l.last_poll_at is null
        or greatest(
          l.last_poll_at + (h.poll_every_ms + spread.ms) * interval '1 millisecond',
          l.last_poll_at + interval '1 minute' / (h.settings ->> 'requests_per_minute')::integer,
          l.next_allowed_at
        ) < clock_timestamp() - ${NO_RUN_SECONDS} * interval '1 second'
      )
    order by 1, 2`;
  return rows.map(({ house, shard, every, spread }) => {
    return { house, shard, pace: paceOf(every, `${house}/${shard}`, spread) };
  });
}

/**
 * The milliseconds within which the polls of a house `h` begin at random. Shards whose requests can exceed their common
 * budget begin so: in a fixed order the same ones would always find it spent. A run must still end in time.
 */
export function spreadOf(sql: Queryable) {
  return sql`
    case
      when (
        select
          max(own.shard) > 0
            and count(*) * 60000 > (h.settings ->> 'requests_per_minute')::bigint * h.poll_every_ms
        from tables own
        where own.house_id = h.id
          and own.enabled
      )
      then least(h.poll_every_ms, ${RUN_MS})
      else 0
    end::integer`;
}

/** The condition that a shard `l` of a house `h` may be polled now. */
function mayBePolled(sql: Queryable) {
  return sql`${isWanted(sql)} and l.next_allowed_at <= clock_timestamp()`;
}

/** The condition that a shard `l` of a house `h` is polled unless a limit or its circuit holds it. */
function isWanted(sql: Queryable) {
  return sql`
    h.enabled
    and h.paused_at is null
    and h.base_url is not null
    and not exists (select from queue_controls where queue = 'poll-house')
    and ${hasEnabledTable(sql)}`;
}

/** The condition that a shard `l` has an enabled table: the lease of one without stays as it was. */
export function hasEnabledTable(sql: Queryable) {
  return sql`
    exists (
      select
      from tables t
      where t.house_id = l.house_id
        and t.shard = l.shard
        and t.enabled
    )`;
}
