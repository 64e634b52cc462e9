import type { Queryable } from "../../db/client.ts";
import type { Band } from "../model/table-model.ts";

/** A round by its id, as a range needs it. */
export interface RoundPlace {
  seq: bigint;
  late: boolean;
}

/** Where a round stands; null where the table does not have it. */
export async function findRound(sql: Queryable, tableId: number, roundId: string): Promise<RoundPlace | null> {
  const [row] = await sql<RoundPlace[]>`
    select seq, late
    from rounds
    where table_id = ${tableId}
      and round_id = ${roundId}`;
  return row ?? null;
}

/**
 * The first on-time round that was taken in at or after a time, or the last at or before it; null where there is none.
 * Times are when we received a round: our order, whatever a house's clock says.
 */
export async function findRoundAt(
  sql: Queryable,
  tableId: number,
  { at, end }: { at: string; end: "from" | "to" },
): Promise<RoundPlace | null> {
  const [row] = await sql<RoundPlace[]>`
    select seq, late
    from rounds
    where table_id = ${tableId}
      and not late
      and ${end === "from" ? sql`received_at >= ${at}::text::timestamptz` : sql`received_at <= ${at}::text::timestamptz`}
    order by ${end === "from" ? sql`received_at, seq` : sql`received_at desc, seq desc`}
    limit 1`;
  return row ?? null;
}

/** The first and last on-time rounds of a table; null where it has none. */
export async function findEnds(
  sql: Queryable,
  tableId: number,
): Promise<{ first: { seq: bigint; roundId: string }; last: { seq: bigint; roundId: string } } | null> {
  const rows = await sql<{ seq: bigint; roundId: string }[]>`
    (
      select seq, round_id as "roundId"
      from rounds
      where table_id = ${tableId}
        and not late
      order by seq
      limit 1
    )
    union all
    (
      select seq, round_id
      from rounds
      where table_id = ${tableId}
        and not late
      order by seq desc
      limit 1
    )`;
  const [first, last] = rows;
  return first === undefined || last === undefined ? null : { first, last };
}

/** The bands of a table and the edge that it declares now, null if none. */
export async function readSettings(sql: Queryable, tableId: number): Promise<{ bands: Band[]; edge: number | null }> {
  const [row] = await sql<{ bands: Band[]; edge: number | null }[]>`
    select colors as bands, (settings ->> 'house_edge')::float8 as edge
    from tables
    where id = ${tableId}`;
  if (row === undefined) throw new Error(`expected a table with id ${tableId}, found none`);
  return row;
}
