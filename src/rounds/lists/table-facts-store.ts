import type { Sql } from "../../db/client.ts";

/** What `table show` prints of a table in addition to its line in the list; times are ISO 8601 UTC. */
export interface TableFacts {
  colors: string[];
  model: string;
  newest_round: string | null;
  /** Rounds that arrived on time; only these can be forecast. */
  on_time: number;
  forecasts: number;
  /** Start of the request since which newer rounds are known to be new; null before the first. */
  last_request_at: string | null;
  /** What is open: for a house, a worker or staff to do. */
  open: {
    gaps: number;
    missing: number;
    quarantined: number;
    conflicts: number;
    unread_payloads: number;
  };
  /** Open notices as callers read them, oldest first. */
  notices: { kind: string; text: string; opened_at: string }[];
}

/**
 * Returns the facts of one table.
 *
 * @throws Error if there is no such table
 */
export async function readTable(sql: Sql, tableId: number): Promise<TableFacts> {
  const [row] = await sql<TableFacts[]>`
    select
      array(select band ->> 'name' from jsonb_array_elements(t.colors) band) as colors,
      d.model,
      d.newest_round_id as newest_round,
      d.last_ordinal::float8 as on_time,
      d.forecast_seq::float8 as forecasts,
      utc_text(d.responded_at) as last_request_at,
      (
        select jsonb_build_object(
          'gaps', (select count(*) from gaps g where g.table_id = t.id and g.state = 'open'),
          'missing', (
            select coalesce(sum(g.missing - g.filled), 0)
            from gaps g
            where g.table_id = t.id
              and g.state = 'open'
          ),
          'quarantined', (select count(*) from quarantine q where q.table_id = t.id and q.state = 'open'),
          'conflicts', (select count(*) from conflicts c where c.table_id = t.id and c.decided_at is null),
          'unread_payloads', (select count(*) from payloads p where p.table_id = t.id and p.state = 'unread')
        )
      ) as open,
      (
        select coalesce(
          jsonb_agg(
            jsonb_build_object('kind', n.kind, 'text', n.text, 'opened_at', utc_text(n.opened_at)) order by n.id
          ),
          '[]'
        )
        from notices n
        where n.table_id = t.id
          and n.closed_at is null
      ) as notices
    from tables t
    join table_heads d on d.table_id = t.id
    where t.id = ${tableId}`;
  if (row === undefined) throw new Error(`expected the table ${tableId}, found none; see \`roundhouse table list\``);
  return row;
}
