import type { Queryable } from "../../db/client.ts";
import { numberOf } from "../round.ts";

/** A stored round for a proof; `number` is null if ids are not consecutive. */
export interface ProvableRound {
  seq: bigint;
  roundId: string;
  number: bigint | null;
  hundredths: bigint;
  proofHash: string | null;
}

/** A range of rounds, both ends included: numbers if ids are consecutive, else seqs. */
export interface PlaceRange {
  by: "number" | "seq";
  from: bigint;
  to: bigint;
}

/** Returns the seq of a round in its table; null if there is no such round. */
export async function findSeq(sql: Queryable, tableId: number, roundId: string): Promise<bigint | null> {
  const [row] = await sql<{ seq: bigint }[]>`
    select seq
    from rounds
    where table_id = ${tableId}
      and round_id = ${roundId}`;
  return row?.seq ?? null;
}

/** How many rounds a range has: some tenths of a second for a million. */
export async function countRange(sql: Queryable, tableId: number, range: PlaceRange): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::float8 as n
    from rounds
    where table_id = ${tableId}
      and ${isWithin(sql, range)}`;
  return row?.n ?? 0;
}

/** The first rounds of a range after a seq, by seq. */
export async function listProvable(
  sql: Queryable,
  tableId: number,
  range: PlaceRange,
  { afterSeq, limit }: { afterSeq: bigint; limit: number },
): Promise<ProvableRound[]> {
  const rows = await sql<Omit<ProvableRound, "number">[]>`
    select seq, round_id as "roundId", hundredths, encode(proof_hash, 'hex') as "proofHash"
    from rounds
    where table_id = ${tableId}
      and seq > ${afterSeq}
      and ${isWithin(sql, range)}
    order by seq
    limit ${limit}`;
  return rows.map((row) => ({ ...row, number: numberOf(row.roundId) }));
}

function isWithin(sql: Queryable, { by, from, to }: PlaceRange) {
  if (by === "seq") return sql`seq between ${from} and ${to}`;
  return sql`case when round_id ~ '^(0|[1-9][0-9]{0,17})$' then round_id::bigint between ${from} and ${to} else false end`;
}

/** The rounds of a table that have these hashes, by hash; the first one if several have it. */
export async function listHashOwners(
  sql: Queryable,
  tableId: number,
  hashes: readonly string[],
): Promise<Map<string, string>> {
  // one by one: for several hashes the index needs a bitmap scan, which workers do not use
  const rows = await sql<{ hash: string; round_id: string }[]>`
    select asked.hash, owner.round_id
    from unnest(${[...hashes]}::text[]) as asked (hash)
    cross join lateral (
      select round_id, seq
      from rounds
      where table_id = ${tableId}
        and proof_hash = decode(asked.hash, 'hex')
      offset 0
    ) owner
    order by owner.seq desc`;
  return new Map(rows.map(({ hash, round_id: roundId }) => [hash, roundId]));
}

/** Rounds of a range whose hash an earlier round of the range has, by seq: some seconds for a million. */
export async function listRepeatedHashes(
  sql: Queryable,
  tableId: number,
  { from, to }: PlaceRange,
  limit: number,
): Promise<{ seq: bigint; roundId: string; proofHash: string }[]> {
  return sql<{ seq: bigint; roundId: string; proofHash: string }[]>`
    select seq, round_id as "roundId", encode(proof_hash, 'hex') as "proofHash"
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
