import type { Sql } from "../db/client.ts";

/** Ids of the answers that brought these rounds; of those that no house sent there is none. */
export async function listPayloadsOfRounds(
  sql: Sql,
  rounds: readonly { tableId: number; seq: bigint }[],
): Promise<bigint[]> {
  if (rounds.length === 0) return [];
  const rows = await sql<{ id: bigint }[]>`
    select distinct r.payload_id as id
    from unnest(
      ${rounds.map(({ tableId }) => tableId)}::integer[],
      ${rounds.map(({ seq }) => String(seq))}::bigint[]
    ) as asked (table_id, seq)
    join rounds r on r.table_id = asked.table_id and r.seq = asked.seq
    where r.payload_id is not null
    order by id`;
  return rows.map(({ id }) => id);
}
