import type { Queryable, Sql, Transaction } from "../db/client.ts";
import type { Query } from "../db/query.ts";
import { inBatches, type Tidied } from "./batch-store.ts";
import {
  BATCH,
  OPEN_QUARANTINE_PER_TABLE,
  RUNS_KEPT_DAYS,
  SETTLED_KEPT_DAYS,
  TRIM_QUARANTINE_MS,
  USAGE_DAYS_KEPT_DAYS,
  USAGE_FACTS_KEPT_DAYS,
} from "./limits.ts";

/** Rows of a table whose time is over, the oldest first: deletes a batch of them and gives how many. */
type Prune = (tx: Transaction) => Promise<{ count: number }>;

/** The statement that deletes a batch of decided items of the quarantine whose time is over, the oldest first. */
export function pruneQuarantineStatement(sql: Queryable): Query<object[]> {
  return sql`
    delete from quarantine
    where id in (
      select id
      from quarantine
      where state <> 'open'
        and greatest(last_seen_at, decided_at) < now() - ${SETTLED_KEPT_DAYS} * interval '1 day'
      order by greatest(last_seen_at, decided_at)
      limit ${BATCH}
    )`;
}

/** What is deleted by its age alone, by table. now(): an index cannot search by clock_timestamp(). */
const BY_AGE: readonly (readonly [table: string, prune: Prune])[] = [
  ["quarantine", pruneQuarantineStatement],
  [
    "notices",
    (tx) => tx`
      delete from notices
      where id in (
        select id
        from notices
        where closed_at < now() - ${SETTLED_KEPT_DAYS} * interval '1 day'
        order by closed_at
        limit ${BATCH}
      )`,
  ],
  [
    "alerts",
    (tx) => tx`
      delete from alerts
      where ctid = any(array(
        select ctid
        from alerts
        where closed_at < now() - ${SETTLED_KEPT_DAYS} * interval '1 day'
        order by closed_at
        limit ${BATCH}
      ))`,
  ],
  [
    "calibration_runs",
    (tx) => tx`
      delete from calibration_runs
      where id in (
        select id
        from calibration_runs
        where kind = 'rolling'
          and calibration_id is null
          and finished_at < now() - ${RUNS_KEPT_DAYS} * interval '1 day'
        order by finished_at
        limit ${BATCH}
      )`,
  ],
  [
    "usage_days",
    (tx) => tx`
      delete from usage_days
      where day in (
        select day
        from usage_days
        where day < (now() at time zone 'UTC')::date - ${USAGE_FACTS_KEPT_DAYS}::integer
          and to_regclass('usage_facts_' || to_char(day, 'YYYYMMDD')) is null
        order by day
        limit ${BATCH}
      )`,
  ],
  [
    "usage_counts",
    (tx) => tx`
      delete from usage_counts
      where ctid = any(array(
        select ctid
        from usage_counts
        where day < (now() at time zone 'UTC')::date - ${USAGE_DAYS_KEPT_DAYS}::integer
        order by day
        limit ${BATCH}
      ))`,
  ],
  [
    "quotas",
    (tx) => tx`
      delete from quotas
      where ctid = any(array(
        select ctid
        from quotas
        where length(period) = 10
          and period < to_char((now() at time zone 'UTC')::date - ${USAGE_DAYS_KEPT_DAYS}::integer, 'YYYY-MM-DD')
        limit ${BATCH}
      ))`,
  ],
];

/** Tables of which rows are deleted by their age. */
export const PRUNED_BY_AGE: readonly string[] = BY_AGE.map(([table]) => table);

/** The deletions by age, one per table: if one fails, a caller can continue with the others. */
export function listPrunes(sql: Sql, signal: AbortSignal): (() => Promise<Tidied & { table: string }>)[] {
  return BY_AGE.map(([table, prune]) => async () => {
    const tidied = await inBatches(sql, signal, async (tx) => (await prune(tx)).count);
    return { table, ...tidied };
  });
}

/**
 * Deletes the oldest open quarantined items of tables that have too many, those with the fewest first; gives the number per
 * table. What five minutes do not suffice for is left to the next hour.
 */
export async function trimQuarantine(sql: Sql, signal: AbortSignal): Promise<{ table: string; dropped: number }[]> {
  const full = await sql<{ id: number; table: string; excess: number }[]>`
    select t.id, t.house_id || '/' || t.game || '/' || t.market as table, q.open - ${OPEN_QUARANTINE_PER_TABLE} as excess
    from tables t
    join (
      select table_id, count(*)::integer as open
      from quarantine
      where state = 'open'
      group by table_id
    ) q on q.table_id = t.id
    where q.open > ${OPEN_QUARANTINE_PER_TABLE}
    order by q.open, t.id`;
  const startedAt = performance.now();
  const mayContinue = () => performance.now() - startedAt < TRIM_QUARANTINE_MS;
  const trimmed: { table: string; dropped: number }[] = [];
  for (const { id, table, excess } of full) {
    if (!mayContinue()) break;
    let left = excess;
    const trim = async (tx: Transaction) => {
      const { count } = await tx`
        delete from quarantine
        where id in (
          select id
          from quarantine
          where table_id = ${id}
            and state = 'open'
          order by last_seen_at, id
          limit ${Math.min(left, BATCH)}
        )
          and state = 'open' -- unless it was decided while this waited for its row`;
      left -= count;
      return count;
    };
    const { rows: dropped } = await inBatches(sql, signal, trim, mayContinue);
    trimmed.push({ table, dropped });
  }
  return trimmed;
}
