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

/** Ids of the answers that brought the rounds these forecasts were issued after, and the rounds that ended them. */
export async function listPayloadsOfScores(
  sql: Sql,
  ended: readonly { tableId: number; seq: bigint; settledSeq: bigint }[],
): Promise<bigint[]> {
  if (ended.length === 0) return [];
  const rows = await sql<{ id: bigint }[]>`
    select distinct r.payload_id as id
    from unnest(
      ${ended.map(({ tableId }) => tableId)}::integer[],
      ${ended.map(({ seq }) => String(seq))}::bigint[],
      ${ended.map(({ settledSeq }) => String(settledSeq))}::bigint[]
    ) as asked (table_id, seq, settled_seq)
    join forecasts f on f.table_id = asked.table_id and f.seq = asked.seq
    join rounds r on r.table_id = f.table_id and r.seq in (f.cutoff_seq, asked.settled_seq)
    where r.payload_id is not null
    order by id`;
  return rows.map(({ id }) => id);
}
