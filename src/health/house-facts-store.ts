import type { Queryable } from "../db/client.ts";
import { hasEnabledTable } from "../houses/polling/polling-store.ts";

/** The health of a house. Only shards with enabled tables count. Its circuit is that of the worst of them. */
export interface HouseFacts {
  id: string;
  name: string;
  simulated: boolean;
  enabled: boolean;
  paused: boolean;
  pausedAt: Date | null;
  pausedBy: string | null;
  pauseReason: string | null;
  pollEverySeconds: number;
  newestPolledAgeMs: number | null;
  newestPolledAt: Date | null;
  circuit: "closed" | "half_open" | "open";
  openedAt: Date | null;
  openedTimes: number;
  failuresInRow: number;
  throttledInRow: number;
  nextAllowedAt: Date | null;
  isWaiting: boolean;
  /** Seconds for which it could have been polled and was not. */
  unpolledSeconds: number;
  lastPollAt: Date | null;
  lastOkAt: string | null;
  /** The HTTP status of the newest poll, 0 without a response, null before the first poll. */
  lastStatus: number | null;
  /** The newest error of its worst shards or, after a later response, why responses cannot be read. */
  lastError: string | null;
  lastErrorAt: string | null;
  /** Null if it is not polled: disabled or paused. */
  nextPollAt: string | null;
}

/** All houses, or one, by id. */
export async function readHouses(sql: Queryable, house: string | null = null): Promise<HouseFacts[]> {
  return sql<HouseFacts[]>`
    select
      h.id,
      h.name,
      h.simulated,
      h.enabled,
      h.paused_at is not null as paused,
      h.paused_at as "pausedAt",
      h.paused_by as "pausedBy",
      h.pause_reason as "pauseReason",
      h.poll_every_ms::float8 / 1000 as "pollEverySeconds",
      extract(epoch from clock_timestamp() - newest.at)::float8 * 1000 as "newestPolledAgeMs",
      newest.at as "newestPolledAt",
      ${circuitColumns(sql)},
      (shards.worst).last_poll_at as "lastPollAt",
      utc_text(shards.ok_at) as "lastOkAt",
      (shards.latest).last_status as "lastStatus",
      coalesce(
        unreadable.game || '/' || unreadable.market || ': ' || coalesce(refused.reason, unreadable.text), (shards.failed).last_error
      ) as "lastError",
      utc_text(case when unreadable.house_id is null then (shards.failed).last_error_at else shards.ok_at end) as "lastErrorAt",
      case when h.enabled and h.paused_at is null then utc_text(shards.next_poll_at) end as "nextPollAt"
    from houses h
    ${houseJoins(sql)}
    where ${house}::text is null
      or h.id = ${house}
    order by h.id`;
}

function circuitColumns(sql: Queryable) {
  return sql`
    coalesce((shards.worst).circuit, 'closed') as circuit,
    (shards.worst).opened_at as "openedAt",
    coalesce((shards.worst).opened_times, 0) as "openedTimes",
    coalesce((shards.worst).failures_in_row, 0) as "failuresInRow",
    coalesce((shards.worst).throttled_in_row, 0) as "throttledInRow",
    case when (shards.worst).next_allowed_at > '-infinity' then (shards.worst).next_allowed_at end as "nextAllowedAt",
    coalesce((shards.worst).next_allowed_at > clock_timestamp(), false) as "isWaiting",
    coalesce(
      extract(epoch from clock_timestamp() - greatest(
        (shards.worst).last_poll_at, (shards.worst).next_allowed_at, (shards.worst).lease_until, h.updated_at, h.created_at
      )), 0
    )::float8 as "unpolledSeconds"`;
}

function houseJoins(sql: Queryable) {
  const worstFirst = sql`array_position(array['open', 'half_open', 'closed'], l.circuit), l.failures_in_row desc`;
  // history requests suspend all shards too; the error of a shard is why it waits only if its last poll failed
  const waitsForError = sql`(l.next_allowed_at > now() and l.last_error_at = l.last_poll_at)`;
  return sql`
    left join lateral (
      select max(d.last_polled_round_at) as at
      from tables t
      join table_heads d on d.table_id = t.id
      where t.house_id = h.id
    ) newest on true
    left join lateral (
      select
        max(l.last_ok_at) as ok_at,
        min(greatest(l.next_allowed_at, coalesce(l.last_poll_at + h.poll_every_ms * interval '1 millisecond', now())))
          as next_poll_at,
        (array_agg(l order by ${worstFirst}, l.last_poll_at nulls last))[1] as worst,
        (array_agg(l order by l.last_error is null, ${worstFirst}, ${waitsForError} desc nulls last, l.last_error_at desc))[1]
          as failed,
        (array_agg(l order by l.last_poll_at desc nulls last))[1] as latest
      from poll_leases l
      where l.house_id = h.id
        and ${hasEnabledTable(sql)}
    ) shards on true
    -- open until a response can be read, so the newest response cannot be read either
    left join (
      select distinct on (t.house_id) t.house_id, t.id, t.game, t.market, n.text, n.opened_at
      from notices n
      join tables t on t.id = n.table_id
      where n.kind = 'format'
        and n.closed_at is null
        and t.enabled
      order by t.house_id, n.opened_at desc
    ) unreadable
      on unreadable.house_id = h.id
      and ((shards.failed).last_error_at is null or (shards.failed).last_error_at < (shards.failed).last_ok_at)
    left join lateral (
      select refused_reason as reason
      from payloads
      where table_id = unreadable.id
        and state = 'refused'
        and received_at >= unreadable.opened_at
      order by received_at desc
      limit 1
    ) refused on true`;
}
