import type { Transaction } from "../db/client.ts";

/** A revision with the round and the conflict that it names. */
export interface StoredRevision {
  id: bigint;
  seq: bigint;
  roundId: string;
  from: bigint | null;
  to: bigint | null;
  color: string | null;
  conflictId: bigint | null;
  reason: string;
  by: string;
  at: string;
  prevHash: string;
  hash: string;
  stored: { roundId: string; hundredths: string } | null;
  conflict: { other: string } | null;
}

/** Revisions of a table after one of them, in the order in which they were made. */
export async function listStoredRevisions(
  tx: Transaction,
  tableId: number,
  afterId: bigint,
  limit: number,
): Promise<StoredRevision[]> {
  return tx<StoredRevision[]>`
    select
      v.id,
      v.seq,
      v.round_id as "roundId",
      v.from_hundredths as "from",
      v.to_hundredths as "to",
      v.to_color as color,
      v.conflict_id as "conflictId",
      v.reason,
      v.decided_by as "by",
      utc_text(v.decided_at) as at,
      v.prev_hash as "prevHash",
      v.hash,
      (
        select jsonb_build_object('roundId', r.round_id, 'hundredths', r.hundredths::text)
        from rounds r
        where r.table_id = v.table_id
          and r.seq = v.seq
          and r.round_id = v.round_id
      ) as stored,
      (
        select jsonb_build_object('other', c.other_hundredths::text)
        from conflicts c
        where c.id = v.conflict_id
          and c.table_id = v.table_id
          and c.round_id = v.round_id
          and c.decided_at is not null
      ) as conflict
    from round_revision v
    where v.table_id = ${tableId}
      and v.id > ${afterId}
    order by v.id
    limit ${limit}`;
}

/** The first conflict of a table that is marked as decided without a revision that decides it. */
export async function listDecidedWithout(tx: Transaction, tableId: number): Promise<{ id: bigint; roundId: string }[]> {
  return tx<{ id: bigint; roundId: string }[]>`
    select c.id, c.round_id as "roundId"
    from conflicts c
    where c.table_id = ${tableId}
      and c.decided_at is not null
      and not exists (select from round_revision v where v.conflict_id = c.id)
    order by c.id
    limit 1`;
}
