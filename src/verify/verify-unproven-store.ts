import type { Transaction } from "../db/client.ts";

/** A range of round numbers, both ends included. */
interface NumberRange {
  from: bigint;
  to: bigint;
}

/** The lowest and highest number of a table's unproven rounds; null if no proven round has a number above the lowest. */
export async function findUnprovenEnds(
  tx: Transaction,
  tableId: number,
): Promise<{ lowest: bigint; highest: bigint } | null> {
  const [row] = await tx<{ lowest: bigint; highest: bigint }[]>`
    select lowest, highest
    from (
      select
        min(round_id::bigint) filter (where verified is not true) as lowest,
        max(round_id::bigint) filter (where verified is not true) as highest,
        max(round_id::bigint) filter (where verified) as proven
      from rounds
      where table_id = ${tableId}
        and ${hasNumber(tx)}
    ) ends
    where proven > lowest`;
  return row ?? null;
}

/** A round with a number, and its hash if that proves it. */
export interface NumberedRound {
  number: bigint;
  roundId: string;
  hundredths: bigint;
  provenHash: string | null;
}

const ROUNDS_PER_READ = 2_000;

/** The rounds of a table in a range, from the highest number down. The transaction runs no other statement meanwhile. */
export async function* readDownwards(
  tx: Transaction,
  tableId: number,
  { from, to }: NumberRange,
): AsyncGenerator<NumberedRound> {
  const pages = tx<NumberedRound[]>`
    select
      round_id::bigint as number,
      round_id as "roundId",
      hundredths,
      case when verified then encode(proof_hash, 'hex') end as "provenHash"
    from rounds
    where table_id = ${tableId}
      and case when ${hasNumber(tx)} then round_id::bigint between ${from} and ${to} else false end
    order by number desc`.cursor(ROUNDS_PER_READ);
  for await (const page of pages) yield* page;
}

function hasNumber(tx: Transaction) {
  return tx`round_id ~ '^(0|[1-9][0-9]{0,17})$'`;
}

/** The newest decision on each round of a table that has one: hundredths, or null for void; there are few. */
export async function listDecided(tx: Transaction, tableId: number): Promise<Map<string, bigint | null>> {
  const rows = await tx<{ roundId: string; to: bigint | null }[]>`
    select distinct on (round_id) round_id as "roundId", to_hundredths as "to"
    from round_revision
    where table_id = ${tableId}
    order by round_id, id desc`;
  return new Map(rows.map(({ roundId, to }) => [roundId, to]));
}
