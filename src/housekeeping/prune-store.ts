import type { Queryable, Sql, Transaction } from "../db/client.ts";
import type { Query } from "../db/query.ts";
import { ENDED_KEPT_DAYS } from "../mail/limits.ts";
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

/** Rows that are deleted by their age alone, in SQL. */
interface Expired {
  age: string;
  /** Rows of a lower age are deleted. now(): an index cannot search by clock_timestamp(). */
  before: string;
  and?: string;
}

const ago = (days: number) => `now() - interval '${days} days'`;
const dayAgo = (days: number) => `(now() at time zone 'UTC')::date - ${days}`;

/** What is deleted by its age alone, by table. */
const EXPIRED: Readonly<Record<string, Expired>> = {
  quarantine: {
    age: "greatest(last_seen_at, decided_at)",
    before: ago(SETTLED_KEPT_DAYS),
    and: "state <> 'open'",
  },
  notices: { age: "closed_at", before: ago(SETTLED_KEPT_DAYS) },
  alerts: { age: "closed_at", before: ago(SETTLED_KEPT_DAYS) },
  calibration_runs: {
    age: "finished_at",
    before: ago(RUNS_KEPT_DAYS),
    and: "kind = 'rolling' and calibration_id is null",
  },
  usage_days: {
    age: "day",
    before: dayAgo(USAGE_FACTS_KEPT_DAYS),
    and: "to_regclass('usage_facts_' || to_char(day, 'YYYYMMDD')) is null",
  },
  usage_counts: { age: "day", before: dayAgo(USAGE_DAYS_KEPT_DAYS) },
  quotas: {
    age: "period",
    before: `to_char(${dayAgo(USAGE_DAYS_KEPT_DAYS)}, 'YYYY-MM-DD')`,
    and: "length(period) = 10",
  },
  mails: {
    age: "created_at",
    before: ago(ENDED_KEPT_DAYS),
    and: `coalesce(sent_at, given_up_at, asked_at) < ${ago(ENDED_KEPT_DAYS)}`,
  },
  alert_mails: { age: "written_at", before: ago(ENDED_KEPT_DAYS) },
};

/** Tables of which rows are deleted by their age. */
export const PRUNED_BY_AGE: readonly string[] = Object.keys(EXPIRED);

/**
 * The statement that deletes a batch of the oldest rows whose time is over. A row that is changed meanwhile is compared again,
 * so that a mail that is retried stays.
 */
export function pruneStatement(sql: Queryable, table: string): Query<object[]> {
  const expired = EXPIRED[table];
  if (expired === undefined) throw new Error(`expected a table of which rows are deleted by their age, found ${table}`);
  const { age, before, and = "true" } = expired;
  const isOver = sql.unsafe(`${age} < ${before} and ${and}`);
  return sql`
    delete from ${sql(table)}
    where ctid = any(array(
      select ctid
      from ${sql(table)}
      where ${isOver}
      order by ${sql.unsafe(age)}
      limit ${BATCH}
    ))
      and ${isOver}`;
}

/** The deletions by age, one per table: if one fails, a caller can continue with the others. */
export function listPrunes(sql: Sql, signal: AbortSignal): (() => Promise<Tidied & { table: string }>)[] {
  return PRUNED_BY_AGE.map((table) => async () => {
    const tidied = await inBatches(sql, signal, async (tx) => (await pruneStatement(tx, table)).count);
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
