import type { Transaction } from "../db/client.ts";

/** A range of round numbers, both ends included. */
export interface NumberRange {
  from: bigint;
  to: bigint;
}

/** A round with a number, and its hash if that proves it. */
export interface NumberedRound {
  number: bigint;
  hundredths: bigint;
  provenHash: string | null;
}

const ROUNDS_PER_READ = 2_000;

/**
 * Numbers from a stored round to the one before it. A walk of 10,000 steps takes 5 ms, and without a bound a single
 * round with a very high number would never end.
 */
export const MOST_STEPS = 10_000n;

/**
 * The unproven rounds of a table in a range and their neighbors, from the highest number down. Only rounds near unproven
 * ones are sorted. The transaction runs no other statement meanwhile.
 */
export async function* readAroundUnproven(
  tx: Transaction,
  tableId: number,
  range: NumberRange,
): AsyncGenerator<NumberedRound> {
  const pages = tx<NumberedRound[]>`
    select number, hundredths, case when verified then encode(proof_hash, 'hex') end as "provenHash"
    from (
      select
        round_id::bigint as number,
        hundredths,
        verified,
        proof_hash,
        lag(verified, 1, true) over down as above,
        lead(verified, 1, true) over down as below
      from rounds
      join (
        select distinct place + part as place
        from (
          select ${placeOf(tx, range)} as place
          from rounds
          where table_id = ${tableId}
            and verified is not true
        ) unproven
        cross join generate_series(-1, 1) part
      ) near_unproven on near_unproven.place = ${placeOf(tx, range)}
      where table_id = ${tableId}
      window down as (order by round_id::bigint desc)
    ) near
    where verified is not true
      or above is not true
      or below is not true
    order by number desc`.cursor(ROUNDS_PER_READ);
  for await (const page of pages) yield* page;
}

/** Of a round in the range the place of its number, in steps of {@link MOST_STEPS}; null of others. */
function placeOf(tx: Transaction, { from, to }: NumberRange) {
  return tx`
    case
      when round_id !~ '^(0|[1-9][0-9]{0,17})$' then null
      when round_id::bigint between ${from} and ${to} then round_id::bigint / ${MOST_STEPS}
    end`;
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
