import type { Transaction } from "../db/client.ts";
import { NOTICE_ORDER } from "./notices.ts";

/**
 * Publishes what callers see of tables beside their rounds: where their rounds end, and their open notices. The last
 * statement of a transaction, so that `updated_at` is as near to the commit as can be. Gives the ids of those that changed.
 */
export async function publishTables(sql: Transaction, tableIds: readonly number[]): Promise<number[]> {
  if (tableIds.length === 0) return [];
  const changed = await sql<{ id: number }[]>`
    insert into published_now as p (
      table_id, last_seq, last_round_at, last_polled_round_at, continuity_text, updated_at
    )
    select
      t.id,
      t.last_seq,
      t.last_round_at,
      t.last_polled_round_at,
      (
        select string_agg(n.text, '. ' order by array_position(${[...NOTICE_ORDER]}::text[], n.kind))
        from notices n
        where n.table_id = t.id
          and n.closed_at is null
      ),
      clock_timestamp()
    from tables t
    where t.id = any(${[...tableIds]}::integer[])
    order by t.id
    on conflict (table_id) do update
    set
      last_seq = excluded.last_seq,
      last_round_at = excluded.last_round_at,
      last_polled_round_at = excluded.last_polled_round_at,
      continuity_text = excluded.continuity_text,
      updated_at = clock_timestamp()
    where (p.last_seq, p.last_round_at, p.last_polled_round_at, p.continuity_text)
      is distinct from (
        excluded.last_seq, excluded.last_round_at, excluded.last_polled_round_at, excluded.continuity_text
      )
    returning p.table_id as id`;
  return changed.map(({ id }) => id);
}
