import type { Queryable } from "../db/client.ts";

/** A stored round as its proof is checked; `number` is null where ids do not count up. */
export interface ProvableRound {
  seq: bigint;
  roundId: string;
  number: bigint | null;
  hundredths: bigint;
  proofHash: string | null;
}

/** Rounds from one place to another, both included: numbers where ids count up, else seqs. */
export interface PlaceRange {
  by: "number" | "seq";
  from: bigint;
  to: bigint;
}

/** The place of a round in a table's order of seq; null where there is no such round. */
export async function findSeq(sql: Queryable, tableId: number, roundId: string): Promise<bigint | null> {
  const [row] = await sql<{ seq: bigint }[]>`
    select seq
    from rounds
    where table_id = ${tableId}
      and round_id = ${roundId}`;
  return row?.seq ?? null;
}

/** How many rounds a range has: a tenth of a second for a million. */
export async function countRange(sql: Queryable, tableId: number, { by, from, to }: PlaceRange): Promise<number> {
  const place = by === "number" ? sql`round_number` : sql`seq`;
  const [row] = await sql<{ n: number }[]>`
    select count(*)::float8 as n
    from rounds
    where table_id = ${tableId}
      and ${place} between ${from} and ${to}`;
  return row?.n ?? 0;
}

/** The first rounds of a range, in its order. */
export async function listProvable(
  sql: Queryable,
  tableId: number,
  { by, from, to }: PlaceRange,
  limit: number,
): Promise<ProvableRound[]> {
  const place = by === "number" ? sql`round_number` : sql`seq`;
  return sql<ProvableRound[]>`
    select seq, round_id as "roundId", round_number as number, hundredths, proof_hash as "proofHash"
    from rounds
    where table_id = ${tableId}
      and ${place} between ${from} and ${to}
    order by ${place}
    limit ${limit}`;
}

/** The rounds of a table that have these hashes, by hash; the first one, where there are several. */
export async function listHashOwners(
  sql: Queryable,
  tableId: number,
  hashes: readonly string[],
): Promise<Map<string, string>> {
  // one by one: of several at once their index knows nothing without a bitmap, which a worker does not make
  const rows = await sql<{ hash: string; round_id: string }[]>`
    select owner.proof_hash as hash, owner.round_id
    from unnest(${[...hashes]}::text[]) as asked (hash)
    cross join lateral (
      select proof_hash, round_id, seq
      from rounds
      where table_id = ${tableId}
        and proof_hash = asked.hash
      offset 0
    ) owner
    order by owner.seq desc`;
  return new Map(rows.map(({ hash, round_id: roundId }) => [hash, roundId]));
}

/** Rounds of a range whose hash an earlier round of it has, by seq: some seconds for a million. */
export async function listRepeatedHashes(
  sql: Queryable,
  tableId: number,
  { from, to }: PlaceRange,
  limit: number,
): Promise<{ seq: bigint; roundId: string; proofHash: string }[]> {
  return sql<{ seq: bigint; roundId: string; proofHash: string }[]>`
    select seq, round_id as "roundId", proof_hash as "proofHash"
    from (
      select seq, round_id, proof_hash, row_number() over (partition by proof_hash order by seq) as time
      from rounds
      where table_id = ${tableId}
        and seq between ${from} and ${to}
        and proof_hash is not null
    ) hashes
    where time > 1
    order by seq
    limit ${limit}`;
}
