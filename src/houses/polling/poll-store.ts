import type { Queryable } from "../../db/client.ts";
import type { Query } from "../../db/query.ts";
import { cut, LONGEST_REASON } from "../../text.ts";
import type { afterPoll } from "./circuit.ts";
import type { Lease } from "./lease-store.ts";
import type { RequestedTable, PollSummary } from "./poll-summary.ts";

/** The validators of a feed for its next request; only for tables whose row changes. */
export interface FeedChange {
  tableId: number;
  /** UTC with seven digits. */
  askedAt: string;
  /** Null without a full response. */
  full: { etag: string | null; lastModified: string | null } | null;
  /** Whether the newest payload could not be read; null: unchanged. */
  isRefused: boolean | null;
}

/** A finished poll: releases its lease with the new state of the house. `next` is null if nothing was requested. */
export interface EndedPoll {
  lease: Lease;
  asked: readonly RequestedTable[];
  feeds: readonly FeedChange[];
  summary: PollSummary;
  /** Of the bodies that are stored, decompressed; a repeat is not. */
  storedBytes: number;
  next: ReturnType<typeof afterPoll> | null;
}

type Statement = Query<readonly unknown[]>;

/**
 * The statements that finish polls, whose leases must be locked earlier in the same transaction: the validators of their
 * feeds, sums per minute, failures, and the circuit with the release of the lease. A poll that is finished already, since
 * its commit had an unknown outcome and is repeated, adds nothing.
 */
export function endPollStatements(sql: Queryable, polls: readonly EndedPoll[]): Statement[] {
  if (polls.length === 0) return [];
  const asked = polls.filter((poll) => poll.asked.length > 0);
  const feeds = polls.flatMap((poll) => poll.feeds).toSorted((a, b) => a.tableId - b.tableId);
  const failures = polls.flatMap(failuresOf);
  return [
    ...(feeds.length > 0 ? [saveFeeds(sql, feeds)] : []),
    ...(asked.length > 0 ? [addSums(sql, asked)] : []),
    ...(failures.length > 0 ? [saveFailures(sql, failures)] : []),
    endLeases(sql, polls),
  ];
}

function saveFeeds(sql: Queryable, feeds: readonly FeedChange[]): Statement {
  return sql`
    update feeds f
    set
      last_asked_at = a.asked_at,
      etag = case when a.is_full then a.etag else f.etag end,
      last_modified = case when a.is_full then a.last_modified else f.last_modified end,
      last_full_at = case when a.is_full then a.asked_at else f.last_full_at end,
      refused_since = case
        when a.is_refused is null then f.refused_since
        when a.is_refused then coalesce(f.refused_since, a.asked_at)
      end
    from unnest(
      ${feeds.map(({ tableId }) => tableId)}::integer[],
      ${feeds.map(({ askedAt }) => askedAt)}::text[]::timestamptz[],
      ${feeds.map(({ full }) => String(full !== null))}::text[]::boolean[],
      ${feeds.map(({ full }) => full?.etag ?? null)}::text[],
      ${feeds.map(({ full }) => full?.lastModified ?? null)}::text[],
      ${feeds.map(({ isRefused }) => (isRefused === null ? null : String(isRefused)))}::text[]::boolean[]
    ) as a (table_id, asked_at, is_full, etag, last_modified, is_refused)
    where f.table_id = a.table_id`;
}

/** Adds polls to the sums of their minutes; at most one per shard. */
function addSums(sql: Queryable, polls: readonly EndedPoll[]): Statement {
  const rows = polls.map(({ lease, summary: { requests, statuses, bytes, latency } }) => {
    const { house, shard, now: at } = lease;
    return { house, shard, at, requests, statuses: Object.fromEntries(statuses), bytes, latency };
  });
  return sql`
    insert into polls as p (house_id, shard, minute, requests, statuses, bytes, latency_ms)
    select house, shard, date_trunc('minute', at), requests, statuses, bytes, latency
    from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as a (
      house text, shard integer, at timestamptz, requests integer, statuses jsonb, bytes bigint, latency integer[]
    )
    where ${isHeld(sql)}
    order by house, shard
    on conflict (minute, house_id, shard) do update
    set
      requests = p.requests + excluded.requests,
      statuses = (
        select jsonb_object_agg(status, requests)
        from (
          select status, sum(requests::integer) as requests
          from (
            select * from jsonb_each_text(p.statuses)
            union all
            select * from jsonb_each_text(excluded.statuses)
          ) as both_sums (status, requests)
          group by status
        ) as summed
      ),
      bytes = p.bytes + excluded.bytes,
      latency_ms = (
        select array_agg(before + now order by place)
        from unnest(p.latency_ms, excluded.latency_ms) with ordinality as both_sums (before, now, place)
      )`;
}

/** The condition that the lease of a house and shard is not released. */
function isHeld(sql: Queryable) {
  return sql`
    exists (
      select
      from poll_leases l
      where l.house_id = a.house
        and l.shard = a.shard
        and l.lease_until > '-infinity'
    )`;
}

/** A request that failed. */
type Failure = { house: string; shard: number; leasedAt: string; tableId: number; receivedMs: number } & Pick<
  Extract<RequestedTable["response"], { kind: "failed" }>,
  "status" | "reason" | "detail"
>;

function failuresOf({ lease, asked }: EndedPoll): Failure[] {
  return asked.flatMap(({ tableId, receivedMs, response, isShared }) =>
    response.kind === "failed" && isShared !== true
      ? [{ house: lease.house, shard: lease.shard, leasedAt: lease.now, tableId, receivedMs, ...response }]
      : [],
  );
}

/** Stores failed requests, each with its reason. */
function saveFailures(sql: Queryable, failed: readonly Failure[]): Statement {
  return sql`
    insert into poll_failures (house_id, table_id, at, status, reason, detail)
    select
      house, table_id, leased_at::timestamptz + received_ms * interval '1 millisecond', status, reason, detail
    from unnest(
      ${failed.map(({ house }) => house)}::text[],
      ${failed.map(({ shard }) => shard)}::integer[],
      ${failed.map(({ leasedAt }) => leasedAt)}::text[],
      ${failed.map(({ tableId }) => tableId)}::integer[],
      ${failed.map(({ receivedMs }) => receivedMs)}::float8[],
      ${failed.map(({ status }) => status)}::integer[],
      ${failed.map(({ reason }) => reason)}::text[],
      ${failed.map(({ detail }) => detail)}::text[]
    ) as a (house, shard, leased_at, table_id, received_ms, status, reason, detail)
    where ${isHeld(sql)}`;
}

/** Releases leases whose rows are locked. */
function endLeases(sql: Queryable, polls: readonly EndedPoll[]): Statement {
  return sql`
    with ended as (
      select *
      from jsonb_to_recordset(${JSON.stringify(polls.map(endOf))}::text::jsonb) as e (
        house_id text, shard integer, asked_at timestamptz, due_at timestamptz, has_asked boolean, state text,
        failures_in_row integer, recent text, opened_times integer, throttled_in_row integer, wait_ms float8,
        is_good boolean, status integer, bytes bigint, error text
      )
    ),
    left_alone as (
      update poll_leases l
      set lease_until = '-infinity'
      from ended e
      where l.house_id = e.house_id
        and l.shard = e.shard
        and not e.has_asked
    )
    update poll_leases l
    set
      lease_until = '-infinity',
      circuit = e.state,
      failures_in_row = e.failures_in_row,
      recent = e.recent,
      opened_times = e.opened_times,
      throttled_in_row = e.throttled_in_row,
      opened_at = case when e.state = 'closed' then null else coalesce(l.opened_at, clock_timestamp()) end,
      next_allowed_at = case
        -- another shard may have been asked to wait longer meanwhile
        when e.wait_ms > 0 then greatest(l.next_allowed_at, clock_timestamp() + e.wait_ms * interval '1 millisecond')
        else l.next_allowed_at
      end,
      bytes_on = (e.asked_at at time zone 'UTC')::date,
      bytes_today = e.bytes + case when l.bytes_on = (e.asked_at at time zone 'UTC')::date then l.bytes_today else 0 end,
      last_poll_at = e.asked_at,
      last_due_at = coalesce(e.due_at, l.last_due_at),
      last_ok_at = case when e.is_good then e.asked_at else l.last_ok_at end,
      last_status = e.status,
      last_error = coalesce(e.error, l.last_error),
      last_error_at = case when e.error is null then l.last_error_at else e.asked_at end
    from ended e
    where l.house_id = e.house_id
      and l.shard = e.shard
      and l.lease_until > '-infinity'
      and e.has_asked`;
}

/** The columns of the lease of a poll after it. */
function endOf({ lease, summary, storedBytes, next }: EndedPoll) {
  return {
    house_id: lease.house,
    shard: lease.shard,
    asked_at: lease.now,
    due_at: lease.dueAt,
    has_asked: next !== null,
    state: next?.circuit.state ?? lease.circuit.state,
    failures_in_row: next?.circuit.failuresInRow ?? 0,
    recent: next?.circuit.recent ?? "",
    opened_times: next?.circuit.openedTimes ?? 0,
    throttled_in_row: next?.circuit.throttledInRow ?? 0,
    wait_ms: next?.waitMs ?? 0,
    is_good: summary.outcome.kind === "good",
    status: summary.status,
    bytes: storedBytes,
    error: summary.error === null ? null : cut(summary.error, LONGEST_REASON),
  };
}
