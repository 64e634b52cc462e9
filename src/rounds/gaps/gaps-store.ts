import type { Queryable, Transaction } from "../../db/client.ts";
import type { Query } from "../../db/query.ts";

/** Gives up the open gaps before these rounds. The caller holds the lock of the table's head. */
export async function giveUpGaps(
  tx: Transaction,
  tableId: number,
  beforeRoundIds: readonly string[],
  reason: string,
): Promise<void> {
  if (beforeRoundIds.length === 0) return;
  await tx`
    update gaps
    set
      state = 'given_up',
      reason = ${reason},
      closed_at = clock_timestamp()
    where table_id = ${tableId}
      and before_round_id = any(${[...beforeRoundIds]}::text[])
      and state = 'open'`;
}

/**
 * The statement that counts rounds that arrived late for the gaps they were missing in, including given-up gaps, and
 * closes gaps that are complete. Columns are passed as texts of arrays.
 */
export function fillGapsStatement(sql: Queryable, tableIds: string, numbers: string): Query<{ table_id: number }[]> {
  return sql<{ table_id: number }[]>`
    update gaps g
    set
      filled = g.filled + f.n,
      state = case when g.filled + f.n >= g.missing then 'filled' else g.state end,
      closed_at = case when g.filled + f.n >= g.missing then clock_timestamp() else g.closed_at end,
      reason = case when g.filled + f.n >= g.missing then null else g.reason end,
      closed_by = case when g.filled + f.n >= g.missing then null else g.closed_by end
    from (
      select
        open.id,
        count(*) as n
      from unnest(${tableIds}::integer[], ${numbers}::bigint[])
        as l (table_id, number)
      join gaps open on open.table_id = l.table_id and l.number between open.from_number and open.to_number
      where open.state <> 'filled'
      group by open.id
    ) f
    where g.id = f.id
    returning g.table_id`;
}

/**
 * The due gap of each table that has waited longest; not all are read, since there may be a million: `clock_timestamp()`,
 * which is volatile, would be no condition of the index.
 */
function dueGaps(sql: Queryable) {
  return sql`
    select id, next_attempt_at
    from gaps
    where table_id = t.id
      and state = 'open'
      and next_attempt_at <= statement_timestamp()
      and lease_until <= statement_timestamp()
    order by next_attempt_at
    limit 1`;
}

/** Due open gaps, the longest waiting one of each house. */
export async function listGapsToFill(sql: Queryable): Promise<{ gap: string }[]> {
  return sql<{ gap: string }[]>`
    select distinct on (t.house_id) g.id::text as gap
    from (select distinct table_id from gaps where state = 'open') waiting
    join tables t on t.id = waiting.table_id
    cross join lateral (${dueGaps(sql)}) g
    order by t.house_id, g.next_attempt_at, g.id
    limit 1000`;
}

/** The due open gap of a house that has waited longest, or null. */
export async function findNextGap(sql: Queryable, house: string): Promise<string | null> {
  const [row] = await sql<{ gap: string }[]>`
    select g.id::text as gap
    from tables t
    cross join lateral (${dueGaps(sql)}) g
    where t.house_id = ${house}
    order by g.next_attempt_at, g.id
    limit 1`;
  return row?.gap ?? null;
}

/** The gaps of unknown size between two rounds of each table that are not filled, the newest 1,000 of a table. */
export function listUnknownGaps(
  sql: Queryable,
  tableIds: readonly number[],
): Query<{ tableId: number; afterRoundId: string; beforeRoundId: string }[]> {
  return sql<{ tableId: number; afterRoundId: string; beforeRoundId: string }[]>`
    select g.table_id as "tableId", g.after_round_id as "afterRoundId", g.before_round_id as "beforeRoundId"
    from unnest(${[...tableIds]}::integer[]) as asked (table_id)
    cross join lateral (
      select *
      from gaps
      where table_id = asked.table_id
        and from_number is null
        and state <> 'filled'
      order by id desc
      limit 1000
    ) g
    order by g.id desc`;
}

/** The statement that closes gaps of unknown size when one response contains both ends and every round between them. */
export function closeUnknownGapsStatement(
  sql: Queryable,
  tableIds: string,
  beforeRoundIds: string,
  found: string,
): Query<readonly unknown[]> {
  return sql`
    update gaps g
    set
      filled = f.found,
      state = 'filled',
      closed_at = clock_timestamp(),
      reason = null,
      closed_by = null
    from unnest(${tableIds}::integer[], ${beforeRoundIds}::text[], ${found}::bigint[])
      as f (table_id, before_round_id, found)
    where g.table_id = f.table_id
      and g.before_round_id = f.before_round_id
      and g.state <> 'filled'`;
}
