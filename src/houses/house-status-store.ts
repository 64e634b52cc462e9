import type { Queryable } from "../db/client.ts";
import { hasEnabledTable } from "./polling/polling-store.ts";
import { statusOf, type Status } from "./status.ts";

/** The health of a house, as `house list` shows it; times in the format of every surface. */
export interface HouseStatus {
  house: string;
  name: string;
  simulated: boolean;
  status: Status;
  last_ok_at: string | null;
  /** The HTTP status of the newest poll, 0 without a response, null before the first poll. */
  last_status: number | null;
  /** The error of the newest failed poll or, after a later response, of one with status 200 that cannot be read. */
  last_error: string | null;
  last_error_at: string | null;
  circuit: "closed" | "half_open" | "open";
  /** Null if it is not polled: disabled or paused. */
  next_poll_at: string | null;
  pause_reason: string | null;
}

/** Lists all houses by id, each with its status and the newest state of its shards with enabled tables. */
export async function listHouses(sql: Queryable, liveWindowSeconds: number): Promise<HouseStatus[]> {
  interface Row extends Omit<HouseStatus, "status"> {
    newest_polled_age_ms: number | null;
    paused: boolean;
    enabled: boolean;
  }
  const rows = await sql<Row[]>`
    select
      h.id as house,
      h.name,
      h.simulated,
      extract(epoch from clock_timestamp() - newest.round_at)::float8 * 1000 as newest_polled_age_ms,
      h.paused_at is not null as paused,
      h.enabled,
      utc_text(polled.last_ok_at) as last_ok_at,
      latest.last_status,
      failure.last_error,
      utc_text(failure.last_error_at) as last_error_at,
      coalesce(polled.circuit, 'closed') as circuit,
      case when h.enabled and h.paused_at is null then utc_text(polled.next_poll_at) end as next_poll_at,
      h.pause_reason
    from houses h
    left join lateral (
      select max(d.last_polled_round_at) as round_at
      from tables t
      join table_heads d on d.table_id = t.id
      where t.house_id = h.id
    ) newest on true
    left join lateral (
      select
        max(last_ok_at) as last_ok_at,
        min(greatest(next_allowed_at, coalesce(last_poll_at + h.poll_every_ms * interval '1 millisecond', now())))
          as next_poll_at,
        (array['open', 'half_open', 'closed'])[min(array_position(array['open', 'half_open', 'closed'], circuit))]
          as circuit
      from poll_leases l
      where house_id = h.id
        and ${hasEnabledTable(sql)}
    ) polled on true
    left join lateral (
      select last_status
      from poll_leases l
      where house_id = h.id
        and ${hasEnabledTable(sql)}
        and last_poll_at is not null
      order by last_poll_at desc
      limit 1
    ) latest on true
    ${newestFailure(sql)}
    order by h.id`;
  return rows.map(({ house, name, simulated, newest_polled_age_ms: newestPolledAgeMs, paused, enabled, ...shown }) => ({
    house,
    name,
    simulated,
    status: statusOf({ newestPolledAgeMs, paused, enabled }, liveWindowSeconds * 1000),
    ...shown,
  }));
}

/** Joins the newest failure of a house: a failed poll, or a later response that cannot be read. */
function newestFailure(sql: Queryable) {
  return sql`
    left join lateral (
      select last_error, last_error_at
      from poll_leases l
      where house_id = h.id
        and ${hasEnabledTable(sql)}
        and last_error_at is not null
      order by last_error_at desc
      limit 1
    ) failed on true
    left join lateral (
      select t.game || '/' || t.market || ': ' || coalesce(newest.refused_reason, n.text) as reason
      from tables t
      join notices n on n.table_id = t.id
      left join lateral (
        select refused_reason
        from payloads
        where table_id = t.id
          and state = 'refused'
          and received_at >= n.opened_at
        order by received_at desc
        limit 1
      ) newest on true
      where t.house_id = h.id
        and t.enabled
        and n.kind = 'format'
        and n.closed_at is null
      order by n.opened_at desc
      limit 1
    ) refused on true
    left join lateral (
      -- it is open until a response can be read, so the newest response cannot be read either
      select refused.reason as last_error, polled.last_ok_at as last_error_at
      where refused.reason is not null
        and (failed.last_error_at is null or failed.last_error_at < polled.last_ok_at)
      union all
      select failed.last_error, failed.last_error_at
      limit 1
    ) failure on true`;
}
