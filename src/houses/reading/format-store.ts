import type { Queryable, Sql } from "../../db/client.ts";
import type { Query } from "../../db/query.ts";

/** The state of a feed's format; `since` is ISO 8601. */
interface StoredFormat {
  tableId: number;
  badResponses: number;
  since: string | null;
}

/** The wait before the first probe of a house whose format changed; the circuit doubles it afterwards. */
const FIRST_PROBE_MS = 2_000;

/** The statement that stores changes of it. */
export function saveFormatsStatement(sql: Queryable, formats: readonly StoredFormat[]): Query<readonly unknown[]> {
  return sql`
    update feeds f
    set
      bad_responses = n.bad_responses,
      format_since = n.since::timestamptz
    from unnest(
      ${formats.map(({ tableId }) => tableId)}::integer[],
      ${formats.map(({ badResponses }) => badResponses)}::integer[],
      ${formats.map(({ since }) => since)}::text[]
    ) as n (table_id, bad_responses, since)
    where f.table_id = n.table_id`;
}

/**
 * Sets a house's circuit by the readability of its responses: opens it if every polled table of a shard has another format,
 * so that the house is only probed now and then, and closes it when one can be read again. `recovered` are the tables whose
 * format is known again. In its own transaction, since polls lock a lease before its feeds; leases are locked in the order
 * of passes.
 */
export async function syncFormatCircuit(sql: Sql, house: string, recovered: readonly number[]): Promise<void> {
  await sql`
    update poll_leases l
    set
      circuit = 'open',
      opened_at = clock_timestamp(),
      opened_times = 1,
      next_allowed_at = greatest(l.next_allowed_at, clock_timestamp() + ${FIRST_PROBE_MS} * interval '1 millisecond')
    where l.house_id = ${house}
      and l.shard in (
        select p.shard
        from poll_leases p
        where p.house_id = ${house}
          and p.circuit = 'closed'
          and (
            select bool_and(f.format_since is not null)
            from tables t
            join feeds f on f.table_id = t.id
            where t.house_id = p.house_id
              and t.shard = p.shard
              and t.enabled
          )
        order by p.shard
        for no key update
      )`;
  if (recovered.length === 0) return;
  await sql`
    update poll_leases l
    set
      circuit = 'closed',
      opened_at = null,
      opened_times = 0,
      failures_in_row = 0,
      recent = '1',
      next_allowed_at = least(l.next_allowed_at, clock_timestamp())
    where l.house_id = ${house}
      and l.shard in (
        select p.shard
        from poll_leases p
        where p.house_id = ${house}
          and p.circuit <> 'closed'
          and exists (
            select
            from tables t
            where t.id = any(${[...recovered]}::integer[])
              and t.house_id = p.house_id
              and t.shard = p.shard
          )
        order by p.shard
        for no key update
      )`;
}
