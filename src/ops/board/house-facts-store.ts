import type { Queryable } from "../../db/client.ts";
import { hasEnabledTable } from "../../houses/polling/polling-store.ts";

/** A house, and the worst of its shards' circuits. */
export interface HouseFacts {
  id: string;
  name: string;
  simulated: boolean;
  enabled: boolean;
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
  lastOkAt: Date | null;
  lastStatus: number | null;
  lastError: string | null;
  lastErrorAt: Date | null;
}

/** All houses, or one, by id. */
export async function readHouses(sql: Queryable, house: string | null = null): Promise<HouseFacts[]> {
  return sql<HouseFacts[]>`
    select
      h.id,
      h.name,
      h.simulated,
      h.enabled,
      h.paused_at as "pausedAt",
      h.paused_by as "pausedBy",
      h.pause_reason as "pauseReason",
      h.poll_every_ms::float8 / 1000 as "pollEverySeconds",
      extract(epoch from clock_timestamp() - newest.at)::float8 * 1000 as "newestPolledAgeMs",
      newest.at as "newestPolledAt",
      coalesce(worst.circuit, 'closed') as circuit,
      worst.opened_at as "openedAt",
      coalesce(worst.opened_times, 0) as "openedTimes",
      coalesce(worst.failures_in_row, 0) as "failuresInRow",
      coalesce(worst.throttled_in_row, 0) as "throttledInRow",
      case when worst.next_allowed_at > '-infinity' then worst.next_allowed_at end as "nextAllowedAt",
      coalesce(worst.next_allowed_at > clock_timestamp(), false) as "isWaiting",
      coalesce(
        extract(epoch from clock_timestamp() - greatest(
          worst.last_poll_at, worst.next_allowed_at, worst.lease_until, h.updated_at, h.created_at
        )), 0
      )::float8 as "unpolledSeconds",
      worst.last_poll_at as "lastPollAt",
      latest.ok_at as "lastOkAt",
      worst.last_status as "lastStatus",
      worst.last_error as "lastError",
      worst.last_error_at as "lastErrorAt"
    from houses h
    left join lateral (
      select max(d.last_polled_round_at) as at
      from tables t
      join table_heads d on d.table_id = t.id
      where t.house_id = h.id
    ) newest on true
    left join lateral (
      select max(last_ok_at) as ok_at
      from poll_leases
      where house_id = h.id
    ) latest on true
    left join lateral (
      select *
      from poll_leases l
      where house_id = h.id
        and ${hasEnabledTable(sql)}
      order by array_position(array['open', 'half_open', 'closed'], circuit), failures_in_row desc, last_poll_at nulls last
      limit 1
    ) worst on true
    where ${house}::text is null
      or h.id = ${house}
    order by h.id`;
}
