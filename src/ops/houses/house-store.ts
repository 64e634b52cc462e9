import type { Queryable } from "../../db/client.ts";

/** Facts of a house that the board does not show. */
export interface HouseDetail {
  baseUrl: string | null;
  demo: boolean;
  /** The entry of the houses file, variables by name: no secret is in it. */
  settings: Record<string, unknown>;
  updatedAt: Date;
  /** Identifies this pause; null if the house is polled. */
  pauseVersion: string | null;
  /** Until when its requests are spent; null where it has no budget. */
  spentUntil: Date | null;
}

/** A shard of a house: what all workers know of it. */
export interface ShardState {
  shard: number;
  circuit: "closed" | "half_open" | "open";
  failuresInRow: number;
  recent: string;
  openedTimes: number;
  nextAllowedAt: Date | null;
  lastPollAt: Date | null;
  lastOkAt: Date | null;
  lastStatus: number | null;
  lastError: string | null;
  lastErrorAt: Date | null;
}

/** When a circuit opened or closed. */
export interface CircuitChange {
  at: Date;
  shard: number;
  state: "open" | "closed";
  lastedSeconds: number | null;
  reason: string | null;
}

/** A poll without a good response. */
export interface PollFailure {
  at: Date;
  table: string | null;
  status: number | null;
  reason: string;
  detail: string;
}

/** Polls of a minute. */
export interface PollMinute {
  at: Date;
  requests: number;
  bytes: number;
  latency: number[];
  statuses: Record<string, number>;
}

/** One house; null where there is none of this id. */
export async function findHouseDetail(sql: Queryable, house: string): Promise<HouseDetail | null> {
  const [row] = await sql<HouseDetail[]>`
    select
      h.base_url as "baseUrl",
      h.demo,
      h.settings,
      h.updated_at as "updatedAt",
      h.paused_at::text as "pauseVersion",
      case when b.spent_until > '-infinity' then b.spent_until end as "spentUntil"
    from houses h
    left join request_budgets b on b.house_id = h.id
    where h.id = ${house}`;
  return row ?? null;
}

/** The shards of a house that have tables. */
export async function listShards(sql: Queryable, house: string): Promise<ShardState[]> {
  return sql<ShardState[]>`
    select
      shard,
      circuit,
      failures_in_row as "failuresInRow",
      recent,
      opened_times as "openedTimes",
      case when next_allowed_at > '-infinity' then next_allowed_at end as "nextAllowedAt",
      last_poll_at as "lastPollAt",
      last_ok_at as "lastOkAt",
      last_status as "lastStatus",
      last_error as "lastError",
      last_error_at as "lastErrorAt"
    from poll_leases
    where house_id = ${house}
    order by shard`;
}

/** The newest changes of a house's circuit. */
export async function listCircuitChanges(sql: Queryable, house: string): Promise<CircuitChange[]> {
  return sql<CircuitChange[]>`
    select at, shard, state, extract(epoch from lasted)::float8 as "lastedSeconds", reason
    from circuit_changes
    where house_id = ${house}
    order by at desc, id desc
    limit 50`;
}

/** The newest failures of a house's polls. */
export async function listFailures(sql: Queryable, house: string): Promise<PollFailure[]> {
  return sql<PollFailure[]>`
    select f.at, t.game || '/' || t.market as "table", f.status, f.reason, f.detail
    from poll_failures f
    left join tables t on t.id = f.table_id
    where f.house_id = ${house}
      and f.at > now() - interval '24 hours'
    order by f.at desc
    limit 50`;
}

/** Polls of a house by minute, the newest hour of them, newest first. */
export async function listPollMinutes(sql: Queryable, house: string): Promise<PollMinute[]> {
  return sql<PollMinute[]>`
    select
      p.minute as at,
      sum(p.requests)::float8 as requests,
      sum(p.bytes)::float8 as bytes,
      array[
        sum(p.latency_ms[1]), sum(p.latency_ms[2]), sum(p.latency_ms[3]), sum(p.latency_ms[4]), sum(p.latency_ms[5]),
        sum(p.latency_ms[6]), sum(p.latency_ms[7]), sum(p.latency_ms[8]), sum(p.latency_ms[9]), sum(p.latency_ms[10])
      ]::float8[] as latency,
      coalesce((
        select jsonb_object_agg(status, n)
        from (
          select s.key as status, sum(s.value::bigint) as n
          from polls q
          cross join lateral jsonb_each_text(q.statuses) s
          where q.house_id = ${house}
            and q.minute = p.minute
          group by s.key
        ) by_code
      ), '{}') as statuses
    from polls p
    where p.house_id = ${house}
      and p.minute > now() - interval '1 hour'
    group by p.minute
    order by p.minute desc`;
}
