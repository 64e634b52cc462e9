import { setTimeout as delay } from "node:timers/promises";
import type { Queryable, Sql } from "../db/client.ts";
import { isLockError } from "../db/errors.ts";
import { reasonOf } from "../errors.ts";
import { inBatches } from "./batch-store.ts";
import { listMissingPartitions } from "./health-store.ts";
import {
  BATCH,
  CALL_MINUTES_KEPT_DAYS,
  DAYS_AHEAD,
  DETACH_PATIENCE_MS,
  DETACH_PAUSE_MS,
  KEPT_PER_HOUSE,
  LOCK_TIMEOUT_MS,
  POLLS_KEPT_DAYS,
  USAGE_FACTS_KEPT_DAYS,
} from "./limits.ts";

/** A day's part of a table: `day` is its UTC day as 2026-11-21. */
export interface DayPartition {
  name: string;
  parent: string;
  day: string;
}

/** Creates the missing day partitions of yesterday to four days ahead, and of earlier days whose calls are in the default one. */
export async function makePartitions(sql: Sql): Promise<void> {
  await sql.begin(async (transaction) => {
    await transaction`select set_config('lock_timeout', ${`${LOCK_TIMEOUT_MS}ms`}, true)`;
    await transaction`select make_day_partitions((now() at time zone 'UTC')::date - 1, ${DAYS_AHEAD + 2})`;
    await transaction`
      select make_day_partitions(day, 1)
      from (select distinct (minute at time zone 'UTC')::date as day from usage_facts_default) d`;
  });
}

/**
 * Creates the partitions of today and tomorrow if one is missing, after days without work for example. Returns those that
 * are still missing, and why.
 */
export async function makeMissingPartitions(sql: Sql): Promise<{ missing: string[]; reason: string }> {
  if ((await listMissingPartitions(sql)).length === 0) return { missing: [], reason: "" };
  let reason = "a table of this name is not attached";
  try {
    await makePartitions(sql);
  } catch (error) {
    reason = reasonOf(error);
  }
  return { missing: await listMissingPartitions(sql), reason };
}

/**
 * Day partitions whose time is over, oldest first: payloads this many hours after the end of their day, sums and
 * failures of polls after 14 days, the facts of the meter after 62, calls by minute after 1. Detached ones of an interrupted
 * run are among them.
 */
export async function listOldPartitions(sql: Queryable, payloadHours: number): Promise<DayPartition[]> {
  return sql<DayPartition[]>`
    with days as (
      select
        part.relname as name,
        parent.relname as parent,
        to_date(right(part.relname, 8), 'YYYYMMDD') as day
      from pg_class part
      left join pg_inherits i on i.inhrelid = part.oid
      left join pg_class whole on whole.oid = i.inhparent
      cross join lateral (select regexp_replace(part.relname, '_[0-9]{8}$', '') as relname) parent
      where part.relnamespace = 'public'::regnamespace
        and part.relkind = 'r'
        and part.relname ~ '^(payloads|polls|poll_failures|usage_facts|call_minutes)_[0-9]{8}$'
        and (whole.relname is null or whole.relname = parent.relname)
    )
    select name, parent, day::text
    from days
    where (day + 1)::timestamp at time zone 'UTC' + case parent
        when 'payloads' then ${payloadHours} * interval '1 hour'
        when 'usage_facts' then ${USAGE_FACTS_KEPT_DAYS} * interval '1 day'
        when 'call_minutes' then ${CALL_MINUTES_KEPT_DAYS} * interval '1 day'
        else ${POLLS_KEPT_DAYS} * interval '1 day'
      end <= clock_timestamp()
    order by day, name`;
}

/** Unread payloads of a day; its partition must stay while there are any. */
export async function countUnread(sql: Queryable, { day }: DayPartition): Promise<number> {
  const [row] = await sql<{ unread: number }[]>`
    select count(*)::integer as unread
    from payloads p
    where ${isOfDay(sql, day)}
      and state = 'unread'`;
  return row?.unread ?? 0;
}

/**
 * Copies the payloads of a day that staff may still look into to `payloads_kept`: those refused, and those with a
 * quarantined item, of each house the newest up to its limit, and those that an open alert names. Idempotent. Returns the
 * number of rows copied.
 */
export async function keepPayloads(sql: Sql, { day }: DayPartition, signal: AbortSignal): Promise<number> {
  const wanted = await sql<{ tableId: number; receivedAt: string }[]>`
    select "tableId", "receivedAt"
    from (
      select
        p.table_id as "tableId",
        utc_text(p.received_at) as "receivedAt",
        row_number() over newest as place,
        sum(coalesce(length(p.body), p.bytes)) over newest as bytes,
        ${isNamed(sql)} as is_named
      from payloads p
      join tables t on t.id = p.table_id
      where ${isOfDay(sql, day)}
        and (
          p.state = 'refused'
          or p.quarantined > 0
          or (p.table_id, p.received_at) in (
            select table_id, payload_received_at
            from quarantine
            where state = 'open'
          )
          or ${isNamed(sql)}
        )
      window newest as (partition by t.house_id order by p.received_at desc, p.table_id desc)
    ) candidates
    where (place <= ${KEPT_PER_HOUSE.rows} and bytes <= ${KEPT_PER_HOUSE.bytes})
      or is_named
    order by "receivedAt", "tableId"`;
  let kept = 0;
  for (let at = 0; at < wanted.length; at += BATCH) {
    signal.throwIfAborted();
    const batch = wanted.slice(at, at + BATCH);
    const rows = await sql`
      insert into payloads_kept (
        table_id, received_at, house_id, kind, requested_at, previous_requested_at, path, status, content_type, bytes,
        sha256, body, state, read_at, refused_reason, items, new_rounds, quarantined, reread_at
      )
      select
        p.table_id, p.received_at, t.house_id, p.kind, p.requested_at, p.previous_requested_at, p.path, p.status,
        p.content_type, p.bytes, p.sha256, coalesce(p.body, shared.body), p.state, p.read_at, p.refused_reason, p.items, p.new_rounds,
        p.quarantined, p.reread_at
      from unnest(
        ${batch.map(({ tableId }) => tableId)}::integer[],
        ${batch.map(({ receivedAt }) => receivedAt)}::text[]::timestamptz[]
      ) as wanted (table_id, received_at)
      join payloads p using (table_id, received_at)
      join tables t on t.id = p.table_id
      left join payloads shared on shared.table_id = p.body_of and shared.received_at = p.received_at
      where ${isOfDay(sql, day)}
      order by p.requested_at, p.table_id -- as a reread locks them
      for share of p -- a reread either finds the copy or has stored its result before
      on conflict (table_id, received_at) do nothing
      returning table_id`;
    kept += rows.length;
  }
  return kept;
}

/** The condition that a payload `p` arrived on a UTC day. */
function isOfDay(sql: Queryable, day: string) {
  return sql`
    p.received_at >= ${day}::date::timestamp at time zone 'UTC'
      and p.received_at < (${day}::date + 1)::timestamp at time zone 'UTC'`;
}

/** The condition that an open alert names a payload `p`, which is compared until the alert closes: one per house. */
function isNamed(sql: Queryable) {
  return sql`
    (p.table_id, p.received_at) in (
      select named.id, split_part(a.subject, ' ', 2)::timestamptz
      from alerts a
      join tables named on named.house_id || '/' || named.game || '/' || named.market = split_part(a.subject, ' ', 1)
      where a.kind = 'payload_differs'
        and a.closed_at is null
    )`;
}

/** Deletes the oldest kept payloads of each house above its limits, unless an open alert names them; returns their number. */
export async function trimKeptPayloads(sql: Sql, signal: AbortSignal): Promise<number> {
  const { rows } = await inBatches(sql, signal, async (tx) => {
    const { count } = await tx`
      delete from payloads_kept
      where (table_id, received_at) in (
        select table_id, received_at
        from (
          select
            table_id,
            received_at,
            row_number() over newest as place,
            sum(length(body)) over newest as bytes,
            ${isNamed(tx)} as is_named
          from payloads_kept p
          window newest as (partition by house_id order by received_at desc, table_id desc)
        ) ranked
        where (place > ${KEPT_PER_HOUSE.rows} or bytes > ${KEPT_PER_HOUSE.bytes})
          and not is_named
        order by received_at, table_id
        limit ${BATCH}
      )`;
    return count;
  });
  return rows;
}

/**
 * Detaches a partition and drops it. The function that does so locks the whole table for the moment of the detachment:
 * others wait at most 200 ms for it, and it is tried again in between.
 * @throws when transactions use the table for longer than that, for five seconds: the next hour retries.
 */
export async function dropPartition(sql: Sql, { parent, day }: DayPartition): Promise<void> {
  const until = performance.now() + DETACH_PATIENCE_MS;
  for (;;) {
    try {
      await sql`select drop_day(${parent}, ${day})`; // detaches
      await sql`select drop_day(${parent}, ${day})`; // drops
      return;
    } catch (error) {
      if (!isLockError(error) || performance.now() > until) throw error;
      await delay(DETACH_PAUSE_MS);
    }
  }
}
