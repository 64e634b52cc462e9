import type { Queryable } from "../../db/client.ts";
import { type ClosedGapFacts, closedGapSentence } from "./notices.ts";

/**
 * Returns the final texts of the open gap notices of these tables, by table. A notice without a round that was received
 * has none: its text states why. The caller holds the locks of the heads, and none of the tables has an open gap.
 */
export async function finalGapTexts(sql: Queryable, tableIds: readonly number[]): Promise<ReadonlyMap<number, string>> {
  if (tableIds.length === 0) return new Map();
  const rows = await sql<(ClosedGapFacts & { id: number })[]>`
    select
      n.table_id as id,
      (count(*) filter (where g.missing > 0))::integer as ranges,
      coalesce(sum(g.missing), 0)::bigint as missing,
      min(g.from_number) filter (where g.missing > 0) as "from",
      max(g.to_number) filter (where g.missing > 0) as "to",
      (count(*) filter (where g.missing is null and (g.filled > 0 or g.state <> 'filled')))::integer as unknown,
      utc_text(min(g.opened_at)) as since,
      bool_and(g.state = 'filled') as "isComplete"
    from notices n
    join gaps g on g.table_id = n.table_id
      and g.state <> 'open'
      and g.closed_at >= n.opened_at -- by an index
      and g.closed_by is null -- staff gave up the others: their rounds do not exist, or are not requested
    where n.table_id = any(${[...tableIds]}::integer[])
      and n.kind = 'gap'
      and n.closed_at is null
    group by n.table_id
    having bool_or(g.state = 'filled' or g.filled > 0)`;
  return new Map(rows.map(({ id, ...gaps }) => [id, closedGapSentence(gaps)]));
}
