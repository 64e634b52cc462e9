import type { Queryable } from "../../db/client.ts";

/** The newest record of a table's live model. */
export interface LiveRecord {
  id: string;
  model: string;
  version: number;
  toSeq: bigint;
  rounds: bigint;
  stateHash: string;
  sums: unknown;
}

/** The newest record of a table's live model; null before the first. */
export async function findLiveRecord(sql: Queryable, tableId: number): Promise<LiveRecord | null> {
  const [row] = await sql<LiveRecord[]>`
    select c.id::text as id, c.model, c.version, c.to_seq as "toSeq", c.rounds, c.state_hash as "stateHash", c.sums
    from calibrations c
    join table_heads h on h.table_id = c.table_id and h.model = c.model
    where c.table_id = ${tableId}
      and c.kind <> 'manual'
    order by c.version desc
    limit 1`;
  return row ?? null;
}

/** Hash of a model's snapshot if its seq is the given one, else null. */
export async function findLiveHash(
  sql: Queryable,
  { tableId, model, seq }: { tableId: number; model: string; seq: bigint },
): Promise<string | null> {
  const [row] = await sql<{ stateHash: string }[]>`
    select encode(state_hash, 'hex') as "stateHash"
    from model_snapshots
    where table_id = ${tableId}
      and model = ${model}
      and seq = ${seq}`;
  return row?.stateHash ?? null;
}
