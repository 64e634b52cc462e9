import type { Queryable, Sql, Transaction } from "../db/client.ts";

/** The calls of an account on a UTC day by each of the three places that hold them. */
export interface UsageDifference {
  accountId: bigint;
  quota: bigint;
  counts: bigint;
  facts: bigint;
}

/** How far the facts of a UTC day are summed. */
export interface UsageDay {
  /** Whether every fact is summed, apart from those of the last minutes of today. */
  isSummed: boolean;
  /** Whether the sums were started from the beginning of the day since the last comparison. */
  isRecount: boolean;
  isOver: boolean;
}

/** A call is committed within seconds of its minute; one that is later shows as a difference, which is recounted. */
const OPEN_MINUTES = 2;
/** Facts that are summed in one transaction: at 24 million a day a million, which took 0.7 s. */
const STEP_HOURS = 1;
/** How often a day is compared until it is closed. */
const EVERY_MINUTES = 10;
/** Three comparisons that did not happen. */
const BEHIND_MINUTES = 30;

/**
 * UTC days, oldest first, as `2026-11-21`, that are to be summed and compared: those with facts that are not closed and
 * were not compared for ten minutes, today included. However many days nothing ran, none is left out.
 */
export async function listDueDays(sql: Queryable): Promise<string[]> {
  const rows = await sql<{ day: string }[]>`
    ${daysOfFacts(sql)}
    select d.day::text as day
    from days d
    left join usage_days u on u.day = d.day
    where d.day <= (now() at time zone 'UTC')::date
      and u.is_closed is not true
      and (u.compared_at is null or u.compared_at < clock_timestamp() - ${EVERY_MINUTES} * interval '1 minute')
    order by d.day`;
  return rows.map(({ day }) => day);
}

/** What is wrong with the roll-up, by subject: days that were not compared for half an hour, and days without a partition. */
export async function findUsageBehind(sql: Queryable): Promise<{ subject: string; text: string }[]> {
  const days = await sql<{ day: string; since: string | null }[]>`
    ${daysOfFacts(sql)}
    select d.day::text as day, utc_text(u.compared_at) as since
    from days d
    left join usage_days u on u.day = d.day
    where u.is_closed is not true
      and (u.compared_at is null or u.compared_at < clock_timestamp() - ${BEHIND_MINUTES} * interval '1 minute')
      and exists (
        select
        from usage_facts f
        where f.minute >= d.day::timestamp at time zone 'UTC'
          and f.minute < least(
            (d.day + 1)::timestamp at time zone 'UTC',
            clock_timestamp() - ${BEHIND_MINUTES} * interval '1 minute'
          )
      )
    order by d.day`;
  const homeless = await sql<{ day: string }[]>`
    select distinct (minute at time zone 'UTC')::date::text as day
    from usage_facts_default
    order by 1
    limit 100`;
  return [
    ...days.map(({ day, since }) => ({
      subject: day,
      text: `the calls of ${day} ${since === null ? "were never compared with their facts" : `were last compared with their facts at ${since}`}; see whether the queue roll-up-usage is paused or fails`,
    })),
    ...homeless.map(({ day }) => ({
      subject: `partition of ${day}`,
      text: `calls of ${day} are stored in usage_facts_default because the day has no partition; see whether the queue housekeep is paused or fails`,
    })),
  ];
}

/** Days that have a partition or facts in the default one; a CTE named `days`. */
function daysOfFacts(sql: Queryable) {
  return sql`
    with days as (
      select to_date(right(part.relname, 8), 'YYYYMMDD') as day
      from pg_inherits i
      join pg_class part on part.oid = i.inhrelid
      where i.inhparent = 'usage_facts'::regclass
        and part.relname ~ '^usage_facts_[0-9]{8}$'
      union
      select (minute at time zone 'UTC')::date
      from usage_facts_default
    )`;
}

/** Whether facts of a UTC day are stored, or can still be: housekeep drops whole days. */
export async function hasFactsOf(sql: Sql, day: string): Promise<boolean> {
  const rows = await sql`
    ${daysOfFacts(sql)}
    select from days where day = ${day}::date`;
  return rows.length > 0;
}

/**
 * Sums the next hour of a day's facts. A day that is over is summed once from its beginning, whatever was summed before.
 * Idempotent under repetition and concurrency: the row of the day is locked.
 */
export async function sumNextHour(sql: Sql, day: string): Promise<UsageDay> {
  return sql.begin(async (tx) => {
    await useScans(tx);
    await tx`
      insert into usage_days (day, summed_to)
      values (${day}::date, ${day}::date::timestamp at time zone 'UTC')
      on conflict do nothing`;
    const [row] = await tx<(UsageDay & { from: string; to: string })[]>`
      select
        utc_text(u.summed_to) as from,
        utc_text(greatest(u.summed_to, least(u.summed_to + ${STEP_HOURS} * interval '1 hour', c.bound))) as to,
        u.summed_to + ${STEP_HOURS} * interval '1 hour' >= c.bound as "isSummed",
        u.is_recount as "isRecount",
        c.bound = c.ends as "isOver"
      from usage_days u
      cross join lateral (
        select
          ends,
          least(ends, date_trunc('minute', clock_timestamp() - ${OPEN_MINUTES} * interval '1 minute')) as bound
        from (select (u.day + 1)::timestamp at time zone 'UTC' as ends) e
      ) c
      where u.day = ${day}::date
      for update of u`;
    if (row === undefined) throw new Error(`expected the row of ${day} in usage_days, found none; run the job again`);
    const { from, to, ...state } = row;
    if (state.isOver && !state.isRecount) {
      await startRecount(tx, day);
      return { ...state, isRecount: true, isSummed: false };
    }
    await tx`
      insert into usage_sums as s (day, account_id, key_id, endpoint, n)
      select ${day}::date, account_id, key_id, endpoint, sum(n)
      from usage_facts
      where minute >= ${from}::timestamptz
        and minute < ${to}::timestamptz
      group by account_id, key_id, endpoint
      on conflict (day, account_id, key_id, endpoint) do update set n = s.n + excluded.n`;
    await tx`update usage_days set summed_to = ${to}::timestamptz where day = ${day}::date`;
    return state;
  });
}

/** Forgets the sums of a day, so that they are made again from its first fact. */
export async function startRecount(sql: Queryable, day: string): Promise<void> {
  await sql`delete from usage_sums where day = ${day}::date`;
  await sql`
    update usage_days
    set summed_to = day::timestamp at time zone 'UTC', is_recount = true
    where day = ${day}::date`;
}

/** Stores that a day was compared; one that is over and agrees is closed, and its sums are deleted. */
export async function saveCompared(sql: Sql, day: string, isClosed: boolean): Promise<void> {
  await sql.begin(async (tx) => {
    if (isClosed) await tx`delete from usage_sums where day = ${day}::date`;
    await tx`
      update usage_days
      set compared_at = clock_timestamp(), is_recount = false, is_closed = ${isClosed}
      where day = ${day}::date`;
  });
}

/**
 * Accounts whose quota, counts and facts of a UTC day are not all equal, at most 100: none, unless a row was changed
 * manually or lost. Counts are compared with the facts for each key and endpoint. Reads the facts that are not summed yet.
 */
export async function listUsageDifferences(sql: Sql, day: string): Promise<UsageDifference[]> {
  return sql.begin("read only", async (tx) => {
    await useScans(tx);
    return tx<UsageDifference[]>`
      with facts as (
        select account_id, key_id, endpoint, sum(n) as n
        from (
          select account_id, key_id, endpoint, n from usage_sums where day = ${day}::date
          union all
          select account_id, key_id, endpoint, n
          from usage_facts
          where minute < (${day}::date + 1)::timestamp at time zone 'UTC'
            and minute >= coalesce(
              (select summed_to from usage_days where day = ${day}::date),
              ${day}::date::timestamp at time zone 'UTC'
            )
        ) f
        group by account_id, key_id, endpoint
      ),
      counts as (
        select account_id, key_id, endpoint, n from usage_counts where day = ${day}::date
      ),
      compared as (
        select
          account_id,
          coalesce(sum(f.n), 0) as facts,
          coalesce(sum(c.n), 0) as counts,
          bool_or(f.n is distinct from c.n) as differs
        from facts f
        full join counts c using (account_id, key_id, endpoint)
        group by account_id
      ),
      quota as (
        select account_id, used from quotas where period = ${day}
      )
      select
        account_id as "accountId",
        coalesce(used, 0) as quota,
        coalesce(counts, 0)::bigint as counts,
        coalesce(facts, 0)::bigint as facts
      from quota
      full join compared using (account_id)
      where coalesce(differs, false)
        or coalesce(used, 0) <> coalesce(facts, 0)
      order by account_id
      limit 100`;
  });
}

/** A worker's connections are set to index look-ups, by which a million facts took 5 s instead of 0.7. */
async function useScans(tx: Transaction): Promise<void> {
  await tx`
    select
      set_config('plan_cache_mode', 'force_custom_plan', true),
      set_config('enable_seqscan', 'on', true),
      set_config('enable_hashjoin', 'on', true)`;
}
